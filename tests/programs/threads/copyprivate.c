/* One thread of a team reads what all others get: DELAY ms in each round.
 *
 * Built with -fopenmp, run with one rank and two threads.
 */
#include "../common.h"
#include <omp.h>

enum { BEGIN = 5 };

int main(int argc, char **argv)
{
    int provided;
    long sum = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
#pragma omp parallel reduction(+ : sum)
        {
            int value = 0;
            at(round, BEGIN);
#pragma omp single copyprivate(value)
            {
                at(round, BEGIN + DELAY);
                value = round + 1;
            }
            sum += value;
        }
    }
    finish(REPEATS, sum);
}
