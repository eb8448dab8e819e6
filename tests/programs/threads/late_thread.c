/* A thread of rank 0 is late at the end of a loop. Its team waits for it, and then rank 1 does. Other
 * threads idle while their first one is in MPI, or alone.
 *
 * Built with -fopenmp, run with two threads of two ranks.
 */
#include "../common.h"
#include <omp.h>

enum { ALONE = 10, EARLY = 20 };

static NOINLINE long loop(int round)
{
    long sum = 0;
#pragma omp parallel for schedule(static, 1) reduction(+ : sum) /* MARK loop */
    for (int part = 0; part < 2; part++) {
        at(round, rank == 0 && part == 1 ? EARLY + DELAY : EARLY);
        sum += part + 1;
    }
    return sum;
}

int main(int argc, char **argv)
{
    long sum = 0;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(provided >= MPI_THREAD_FUNNELED && omp_get_max_threads() == 2);
    for (int round = 0; round < REPEATS; round++) {
        at(round, ALONE);
        sum += loop(round);
        MPI_Barrier(WORLD); /* MARK barrier */
    }
    finish(REPEATS, sum);
}
