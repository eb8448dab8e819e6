/* Functions of regions whose last call is one of OpenMP's: compilers make it a jump, and what it returns to is the
 * runtime. Each waits there for a thread that is late.
 *
 * Built with -fopenmp, run with two threads of one rank.
 */
#include "../common.h"
#include <omp.h>

/* What forks a team goes on after it. */
static volatile int over;

/* Functions with variables of their own make no jumps: this one is no part of others. */
static NOINLINE void sleep_ms(int ms) { pass_ms(ms); }

static void late(void)
{
    if (omp_get_thread_num() == 1)
        sleep_ms(20);
}

static NOINLINE void barrier(void)
{
#pragma omp parallel
    {
        late();
#pragma omp barrier
    }
    over++;
}

static NOINLINE void single(void)
{
#pragma omp parallel
    {
        late();
#pragma omp single
        late();
    }
    over++;
}

static NOINLINE void section(void)
{
#pragma omp parallel
    {
#pragma omp critical
        sleep_ms(5);
    }
    over++;
}

static NOINLINE void chore(void)
{
#pragma omp parallel
    {
#pragma omp task
        sleep_ms(20);
#pragma omp taskwait
    }
    over++;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(omp_get_max_threads() == 2);
    for (int round = 0; round < REPEATS; round++) {
        barrier();
        single();
        section();
        chore();
    }
    finish(REPEATS, 0);
}
