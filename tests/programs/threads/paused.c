/* Recording is paused within parallel regions, and goes on within others. Each region has three barriers. Before the second
 * one, the first thread pauses or resumes; to the third one, another thread comes late. Of the four regions of a round, the
 * first one is paused, the second one has no record, in the third one recording goes on, and the last one is recorded.
 *
 * Built with -fopenmp, run with two threads.
 */
#include "../common.h"
#include <omp.h>

enum { ROUNDS = 5, LATE = 60 };
static long sums[2];

static NOINLINE void region(int level)
{
#pragma omp parallel num_threads(2)
    {
        int own = omp_get_thread_num();
        sums[own]++;
#pragma omp barrier
        if (own == 0 && level >= 0)
            MPI_Pcontrol(level);
#pragma omp barrier
        pass_ms(own == 1 ? LATE : 0);
#pragma omp barrier
        sums[own]++;
    }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    for (int round = 0; round < ROUNDS; round++) {
        region(0);
        region(-1);
        region(1);
        region(-1);
        MPI_Barrier(WORLD);
    }
    result(sums[0] + sums[1]);
    MPI_Finalize();
}
