// The first thread waits for what a second one does: a condition variable with its mutex.
//
// Run with one rank or more.
#include "../common.h"
#include <condition_variable>
#include <mutex>
#include <thread>

enum { BEGIN = 10 };

int main(int argc, char **argv)
{
    std::mutex mutex;
    std::condition_variable changed;
    int jobs = 0;
    long sum = 0;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    std::thread worker([&] {
        for (int round = 0; round < REPEATS; round++) {
            at(round, BEGIN + DELAY);
            std::lock_guard<std::mutex> lock(mutex);
            jobs = round + 1;
            changed.notify_one(); // MARK signal
        }
    });
    for (int round = 0; round < REPEATS; round++) {
        at(round, BEGIN);
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return jobs > round; }); // MARK wait
        sum += jobs;
    }
    worker.join();
    finish(REPEATS, sum);
}
