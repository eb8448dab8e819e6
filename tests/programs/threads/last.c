/* Two threads of a team want a critical section at the same time, and each stays there for STAY ms: one waits for the
 * other. It is the last that the region does: compilers end it by a jump into the runtime, whose callers are
 * not looked at.
 *
 * Built with -fopenmp, run with two threads of one rank.
 */
#pragma GCC optimize("O2")
#include "../common.h"
#include <omp.h>

enum { BEGIN = 10, STAY = 20 };

static long sum;

__attribute__((noinline)) static void in_turns(int round)
{
#pragma omp parallel
    {
        at(round, BEGIN);
#pragma omp critical /* MARK section */
        {
            pass_ms(STAY);
            sum++;
        }
    }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(omp_get_max_threads() == 2);
    for (int round = 0; round < REPEATS; round++)
        in_turns(round);
    finish(REPEATS, sum);
}
