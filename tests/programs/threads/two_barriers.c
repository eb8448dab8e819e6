/* Three threads of a team meet at two barriers of a region: the second one is late at the first barrier, the third one at the
 * other.
 *
 * Built with -fopenmp, run with three threads of one rank or more.
 */
#include "../common.h"
#include <omp.h>

enum { BEGIN = 10, LATE = BEGIN + 30, AGAIN = LATE + 10, LATER = AGAIN + 20 };

static NOINLINE long phases(int round)
{
    long sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        const int thread = omp_get_thread_num();
        at(round, thread == 1 ? LATE : BEGIN);
#pragma omp barrier /* MARK first */
        at(round, thread == 2 ? LATER : AGAIN);
#pragma omp barrier /* MARK second */
        sum += thread;
    }
    return sum;
}

int main(int argc, char **argv)
{
    long sum = 0;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(provided >= MPI_THREAD_FUNNELED && omp_get_max_threads() == 3);
    for (int round = 0; round < REPEATS; round++)
        sum += phases(round);
    finish(3 * REPEATS, sum);
}
