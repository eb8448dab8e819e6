/* The first thread makes tasks that the second one executes, and waits for them: at a taskwait, at the end of a
 * taskgroup, and at the end of the region. Then it executes a task itself at a taskwait: it does not wait there.
 *
 * Built with -fopenmp, run with two threads of one rank or more.
 */
#include "../common.h"
#include <omp.h>
#include <stdatomic.h>

enum { BEGIN = 10, PART = 20, OWN = 85, END = 90 };

static atomic_int begun;
static long sum;

/* Makes a task that lasts until then, and returns when another thread has begun it. */
static NOINLINE void give(int round, int until)
{
    begun = 0;
#pragma omp task firstprivate(round, until) /* MARK task */
    {
        begun = 1;
        at(round, until);
        sum += omp_get_thread_num();
    }
    while (!begun)
        usleep(50);
}

static NOINLINE void others(int round)
{
#pragma omp parallel /* MARK region */
    if (omp_get_thread_num() == 0) {
        give(round, BEGIN + 2 * PART);
        at(round, BEGIN + PART);
#pragma omp taskwait /* MARK taskwait */
#pragma omp taskgroup /* MARK taskgroup */
        {
            give(round, BEGIN + 3 * PART);
        }
        give(round, BEGIN + 3 * PART + PART / 2);
    }
}

static NOINLINE void own(int round)
{
#pragma omp parallel /* MARK own */
    {
        if (omp_get_thread_num() == 0) {
#pragma omp task firstprivate(round)
            {
                at(round, OWN);
                sum += 10 * omp_get_thread_num();
            }
#pragma omp taskwait
        } else {
            at(round, END);
        }
    }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(omp_get_max_threads() == 2);
    for (int round = 0; round < REPEATS; round++) {
        at(round, BEGIN);
        others(round);
        own(round);
    }
    finish(3 * REPEATS, sum);
}
