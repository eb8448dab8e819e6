/* Waits for tasks in calls that are there for something else: a loop of tasks waits for the part of the second thread,
 * a task without `if` waits for the one that it depends on, and so does a taskwait with `depend`; PART ms each. Near
 * misses: a loop whose parts are equally long, one that does not wait, and tasks that a thread waits for while it
 * executes them.
 *
 * Built with -fopenmp, run with two threads of one rank.
 */
#include "../common.h"
#include <omp.h>
#include <stdatomic.h>

enum { BEGIN = 10, PART = 20, SLOTS = 5 };

static atomic_int begun;
static long sum;

static void wait_for(int threads)
{
    while (begun < threads)
        usleep(50);
}

/* Each thread executes one part: until BEGIN, and so much later the second thread. */
static void part(int round, int later)
{
    begun++;
    wait_for(2);
    at(round, BEGIN + (omp_get_thread_num() == 1 ? later : 0));
}

static NOINLINE void loop(int round, int later)
{
    begun = 0;
#pragma omp parallel
#pragma omp master
    {
#pragma omp taskloop num_tasks(2) /* MARK loop */
        for (int n = 0; n < 2; n++)
            part(round, later);
    }
    sum += begun;
}

static NOINLINE void loop_without_wait(int round)
{
    begun = 0;
#pragma omp parallel
    {
#pragma omp master
        {
#pragma omp taskloop num_tasks(1) nogroup
            for (int n = 0; n < 1; n++) {
                begun = 1;
                at(round, BEGIN + PART);
            }
            wait_for(1);
            at(round, BEGIN + PART);
        }
    }
    sum += begun;
}

/* Another thread has begun the task that the next one depends on. */
static void precede(int round, int *value)
{
    begun = 0;
#pragma omp task depend(out : *value)
    {
        begun = 1;
        at(round, BEGIN + PART);
        *value = 2;
    }
    wait_for(1);
    at(round, BEGIN);
}

static NOINLINE void dependent_task(int round)
{
    int value = 0;
#pragma omp parallel shared(value)
#pragma omp master
    {
        precede(round, &value);
#pragma omp task if (0) depend(in : value) shared(value) /* MARK task */
        sum += value;
    }
}

static NOINLINE void dependent_wait(int round)
{
    int value = 0;
#pragma omp parallel shared(value)
#pragma omp master
    {
        precede(round, &value);
#pragma omp taskwait depend(in : value) /* MARK taskwait */
        sum += value;
    }
}

/* A thread executes the task that it waits for itself, and waits in it for another one. */
static NOINLINE void nested(void)
{
    int outer = 0, inner = 0;
    begun = 0;
#pragma omp parallel shared(outer, inner)
    if (omp_get_thread_num() == 1) {
        wait_for(1);
    } else {
#pragma omp task depend(out : outer) shared(outer, inner)
        {
#pragma omp task depend(out : inner) shared(inner)
            inner = 1;
#pragma omp task if (0) depend(in : inner) shared(outer, inner)
            outer = inner + 1;
        }
#pragma omp task if (0) depend(in : outer) shared(outer)
        sum += outer;
        begun = 1;
    }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(omp_get_max_threads() == 2);
    for (int round = 0; round < SLOTS * REPEATS; round += SLOTS) {
        loop(round, PART);
        loop(round + 1, 0);
        loop_without_wait(round + 2);
        dependent_task(round + 3);
        dependent_wait(round + 4);
        nested();
    }
    finish(SLOTS * REPEATS, sum);
}
