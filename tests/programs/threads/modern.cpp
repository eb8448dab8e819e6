// What C++20 has for threads, without calls of POSIX threads: the first thread waits at a latch, for a future and at a
// barrier for others that come late. Then it waits for the end of one that calls nothing, and for a mutex with a
// time limit, and for the end of another one with limits, of which the first is too short. Each slot has a new thread.
//
// Built with -std=c++20 -pthread, run with one rank.
#include "../common.h"
#include <barrier>
#include <cerrno>
#include <chrono>
#include <future>
#include <latch>
#include <mutex>
#include <thread>

enum { BEGIN = 10, SLOTS = 6 };

static void *compute(void *slot)
{
    at(*static_cast<int *>(slot), BEGIN + DELAY);
    return nullptr;
}

/* 0, or an error. */
static int join_within(pthread_t thread, long ms)
{
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    return pthread_timedjoin_np(thread, nullptr, &until); // MARK within
}

int main(int argc, char **argv)
{
    int provided;
    long sum = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
        int slot = SLOTS * round;
        {
            std::latch latch(1);
            std::thread late([&] {
                at(slot, BEGIN + DELAY);
                latch.count_down(); // MARK down
            });
            at(slot, BEGIN);
            latch.wait(); // MARK latch
            late.join();
        }
        {
            std::promise<int> promise;
            std::thread late([&] {
                at(slot + 1, BEGIN + DELAY);
                promise.set_value(1);
            });
            at(slot + 1, BEGIN);
            sum += promise.get_future().get();
            late.join();
        }
        {
            std::barrier barrier(2);
            std::thread late([&] {
                at(slot + 2, BEGIN + DELAY);
                barrier.arrive_and_wait();
            });
            at(slot + 2, BEGIN);
            barrier.arrive_and_wait();
            late.join();
        }
        {
            std::thread late([&] { at(slot + 3, BEGIN + DELAY); });
            at(slot + 3, BEGIN);
            late.join(); // MARK join
        }
        {
            std::timed_mutex mutex;
            std::latch is_held(1);
            std::thread late([&] {
                std::lock_guard<std::timed_mutex> lock(mutex);
                is_held.count_down();
                at(slot + 4, BEGIN + DELAY);
            });
            is_held.wait();
            at(slot + 4, BEGIN);
            sum += mutex.try_lock_for(std::chrono::seconds(30));
            mutex.unlock();
            late.join();
        }
        {
            int own = slot + 5;
            pthread_t late;
            REQUIRE(pthread_create(&late, nullptr, compute, &own) == 0);
            at(slot + 5, BEGIN);
            // On a busy machine it may have ended.
            int early = join_within(late, 1);
            REQUIRE(early == 0 || (early == ETIMEDOUT && join_within(late, 30000) == 0));
        }
    }
    finish(REPEATS, sum);
}
