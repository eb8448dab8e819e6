/* A process with two OpenMP runtimes: GCC's of the program, and LLVM's of a library. In each, the second of two threads
 * comes late: at a barrier of the program's team, and at the end of the library's region.
 *
 * Built with -fopenmp by GCC, with other_runtime.c by LLVM; run with two threads of one rank.
 */
#include "../common.h"
#include <omp.h>

enum { BEGIN = 10, SLOTS = 2 };
void late_in(double begin, double late, long *sum);

int main(int argc, char **argv)
{
    long sum = 0;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(omp_get_max_threads() == 2);
    for (int round = 0; round < SLOTS * REPEATS; round += SLOTS) {
#pragma omp parallel reduction(+ : sum)
        {
            at(round, BEGIN + omp_get_thread_num() * DELAY);
#pragma omp barrier /* MARK barrier */
            sum += omp_get_thread_num();
        }
        double begin = origin + 1e-3 * schedule_scale * ((round + 1) * PERIOD + BEGIN);
        late_in(begin, 1e-3 * schedule_scale * DELAY, &sum);
    }
    finish(SLOTS * REPEATS, sum);
}
