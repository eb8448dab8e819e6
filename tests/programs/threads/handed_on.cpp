// Two threads of the program alone: one computes, and lets the other one go on, by a condition and by a future. The first
// thread waits for the end of that one. A thread of a pool waits for work that never comes.
//
// Built with -pthread, run with one rank.
#include "../common.h"
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

enum { SIGNAL = DELAY, MADE = DELAY + 20, END = MADE + 5 };

static std::mutex own;
static std::condition_variable made, work;
static int known;
static bool is_over;

static void compute_until(int round, double ms)
{
    while (now() < origin + 1e-3 * schedule_scale * (round * PERIOD + ms)) {
    }
}

static void produce(int round, std::promise<long> *promise)
{
    compute_until(round, SIGNAL);
    {
        std::lock_guard<std::mutex> guard(own);
        known = round + 1;
    }
    made.notify_all(); // MARK signal
    compute_until(round, MADE);
    promise->set_value(round); // MARK promise
}

static void consume(int round, std::promise<long> *promise, long *sum)
{
    {
        std::unique_lock<std::mutex> guard(own);
        made.wait(guard, [=] { return known > round; }); // MARK wait
    }
    *sum += promise->get_future().get(); // MARK future
    compute_until(round, END);
}

static void wait_for_work()
{
    std::unique_lock<std::mutex> guard(own);
    work.wait(guard, [] { return is_over; });
}

int main(int argc, char **argv)
{
    long sum = 0;
    MPI_Init(&argc, &argv);
    start_clock();
    std::thread pool(wait_for_work);
    for (int round = 0; round < REPEATS; round++) {
        at(round, 0);
        std::promise<long> promise;
        std::thread consumer(consume, round, &promise, &sum);
        std::thread producer(produce, round, &promise);
        consumer.join(); // MARK join
        producer.join();
    }
    {
        std::lock_guard<std::mutex> guard(own);
        is_over = true;
    }
    work.notify_all();
    pool.join();
    finish(REPEATS, sum);
}
