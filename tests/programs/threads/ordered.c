/* Four threads share the four iterations of an ordered loop, and each stays STAY ms in its ordered region:
 * they wait for 0, 1, 2 and 3 times as long. In a second loop each comes to its region when it is its turn:
 * nobody waits.
 *
 * Built with -fopenmp, run with four threads of one rank.
 */
#include "../common.h"
#include <omp.h>

enum { TEAM = 4, BEGIN = 10, STAY = 20, SECOND = BEGIN + (TEAM + 1) * STAY };

int main(int argc, char **argv)
{
    long sum = 0;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(omp_get_max_threads() == TEAM);
    for (int round = 0; round < 2 * REPEATS; round += 2) {
#pragma omp parallel for ordered schedule(static, 1)
        for (int part = 0; part < TEAM; part++) {
            at(round, BEGIN);
#pragma omp ordered
            {
                pass_ms(STAY);
                sum = 2 * sum % 1000 + part;
            }
        }
#pragma omp parallel for ordered schedule(static, 1)
        for (int part = 0; part < TEAM; part++) {
            at(round, SECOND + part * STAY);
#pragma omp ordered
            sum = 2 * sum % 1000 + part;
        }
    }
    finish(2 * REPEATS, sum);
}
