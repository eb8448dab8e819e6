/* Four threads of a team want a critical section, one a millisecond after the other, and each stays there for STAY ms.
 * Each waits for all that came before it. A section of another name is entered by one thread alone, again
 * and again: nobody waits.
 *
 * Built with -fopenmp, run with four threads of one rank or more.
 */
#include "../common.h"
#include <omp.h>

enum { BEGIN = 10, STAY = 20, OFTEN = 1000 };

int main(int argc, char **argv)
{
    long sum = 0;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(omp_get_max_threads() == 4);
    for (int round = 0; round < REPEATS; round++) {
#pragma omp parallel
        {
            at(round, BEGIN + omp_get_thread_num());
#pragma omp critical /* MARK section */
            {
                pass_ms(STAY);
                sum++;
            }
#pragma omp single
            for (int n = 0; n < OFTEN; n++) {
#pragma omp critical(quiet)
                sum += n % 2;
            }
        }
    }
    finish(REPEATS, sum);
}
