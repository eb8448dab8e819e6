/* Regions in regions. In the first one of each round, a thread of rank 0's inner team is late: the first
 * thread waits for it there, the other thread of the outer team waits for the first one, and then rank 1 does.
 * In the second one, that other thread is late, and nobody of the inner team is.
 *
 * Built with -fopenmp, run with two ranks.
 */
#include "../common.h"
#include <omp.h>

enum { BEGIN = 5, EARLY = 10, LATE = EARLY + DELAY, LATER = LATE + 20 };
static long counts[2];

static NOINLINE void inner(int round, int until, int inner_until)
{
#pragma omp parallel num_threads(2) /* MARK inner */
    {
        int thread = omp_get_thread_num();
        at(round, thread == 1 ? inner_until : until);
        if (thread == 1)
            counts[0] += 1;
    }
}

static NOINLINE void late_inside(int round)
{
#pragma omp parallel num_threads(2) /* MARK first */
    {
        if (omp_get_thread_num() == 0)
            inner(round, EARLY, rank == 0 ? LATE : EARLY);
        else
            at(round, EARLY);
    }
}

static NOINLINE void late_outside(int round)
{
#pragma omp parallel num_threads(2) /* MARK second */
    {
        if (omp_get_thread_num() == 0) {
            inner(round, EARLY, EARLY);
        } else {
            at(round, rank == 0 ? LATER : EARLY);
            counts[1] += 1;
        }
    }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    omp_set_max_active_levels(2);
    REQUIRE(provided >= MPI_THREAD_FUNNELED && omp_get_max_active_levels() == 2);
    for (int round = 0; round < REPEATS; round++) {
        at(round, BEGIN);
        late_inside(round);
        late_outside(round);
        MPI_Barrier(WORLD); /* MARK barrier */
    }
    finish(REPEATS, 2 * counts[0] + counts[1]);
}
