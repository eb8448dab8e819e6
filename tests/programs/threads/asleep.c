/* A thread of the runtime sleeps in all that it waits for: the first thread is late at the end of each region, and
 * sleeps alone after it.
 *
 * Built with -fopenmp, run with two threads of one rank that wait passively.
 */
#include "../common.h"
#include <omp.h>

enum { END = 40, NEXT = 90 };

int main(int argc, char **argv)
{
    long sum = 0;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(omp_get_max_threads() == 2);
    for (int round = 0; round < REPEATS; round++) {
#pragma omp parallel reduction(+ : sum)
        {
            if (omp_get_thread_num() == 0)
                at(round, END);
            sum++;
        }
        at(round, NEXT);
    }
    /* The last wait is over, too. */
#pragma omp parallel reduction(+ : sum)
    sum++;
    finish(REPEATS, sum);
}
