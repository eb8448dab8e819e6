/* The second iteration of a loop depends on the first one, which takes DELAY ms. In a second loop it comes when
 * that is done: nobody waits. Then a region whose reduction tasks take part in, at whose end the first thread waits
 * DELAY ms for the second one. Runtimes spin in these waits, so there are no more threads than that.
 *
 * Built with -fopenmp, run with two threads of one rank.
 */
#include "../common.h"
#include <omp.h>

enum { TEAM = 2, BEGIN = 10, SLOTS = 3 };

int main(int argc, char **argv)
{
    long sum = 0, tasks = 0;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(omp_get_max_threads() == TEAM);
    for (int round = 0; round < SLOTS * REPEATS; round += SLOTS) {
#pragma omp parallel for ordered(1) schedule(static, 1)
        for (int part = 0; part < TEAM; part++) {
            at(round, BEGIN);
#pragma omp ordered depend(sink : part - 1) /* MARK sink */
            at(round, BEGIN + DELAY);
            sum = 2 * sum % 1000 + part;
#pragma omp ordered depend(source) /* MARK source */
        }
#pragma omp parallel for ordered(1) schedule(static, 1)
        for (int part = 0; part < TEAM; part++) {
            at(round + 1, BEGIN + 5 * part);
#pragma omp ordered depend(sink : part - 1)
            sum = 2 * sum % 1000 + part;
#pragma omp ordered depend(source)
        }
#pragma omp parallel reduction(task, + : tasks) /* MARK reduction */
        {
#pragma omp task in_reduction(+ : tasks)
            tasks++;
            at(round + 2, BEGIN + (omp_get_thread_num() == 1 ? DELAY : 0));
        }
    }
    REQUIRE(tasks == TEAM * REPEATS);
    finish(SLOTS * REPEATS, sum);
}
