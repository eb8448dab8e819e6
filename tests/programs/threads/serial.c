/* Between two regions the first thread computes alone for DELAY ms, while three others of its team have nothing to do.
 *
 * Built with -fopenmp, run with four threads of one rank.
 */
#include "../common.h"
#include <omp.h>

enum { BEGIN = 10 };
static long sum;

static NOINLINE void compute_alone(int round)
{
    double until = origin + 1e-3 * schedule_scale * (round * PERIOD + BEGIN + DELAY);
    volatile double part = 0;
    while (now() < until)
        for (int n = 0; n < 1000; n++)
            part += n; /* MARK serial */
    sum += part >= 0;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(omp_get_max_threads() == 4);
    for (int round = 0; round < REPEATS; round++) {
#pragma omp parallel
        at(round, BEGIN);
        compute_alone(round);
#pragma omp parallel /* MARK region */
        at(round, BEGIN + DELAY + 20);
    }
    finish(REPEATS, sum);
}
