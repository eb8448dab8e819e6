/* Threads of teams call MPI, in their parts of a region and in tasks: rank 0 is late with a message for one thread
 * of rank 1, then outside of regions, then in a task.
 *
 * Built with -fopenmp, run with two threads of two ranks.
 */
#include "../common.h"
#include <omp.h>

enum { EARLY = 10, OUTSIDE = 40, ALONE = 2, TASK = 3, ROUND = 200 };

static void step(int round, int ms) { at_ms(round * ROUND + ms); }

static NOINLINE long meet(int round, int tag)
{
    long value = round;
    if (rank == 0) {
        step(round, tag == 1 ? EARLY + DELAY : EARLY / 2);
        MPI_Send(&value, 1, MPI_LONG, 1, tag, WORLD); /* MARK send */
    } else {
        step(round, EARLY);
        MPI_Recv(&value, 1, MPI_LONG, 0, tag, WORLD, MPI_STATUS_IGNORE); /* MARK receive */
    }
    return value + tag;
}

static NOINLINE long serial(int round)
{
    long value = round;
    if (rank == 0) {
        step(round, EARLY + DELAY + OUTSIDE);
        MPI_Send(&value, 1, MPI_LONG, 1, ALONE, WORLD);
    } else {
        step(round, EARLY + DELAY + EARLY);
        MPI_Recv(&value, 1, MPI_LONG, 0, ALONE, WORLD, MPI_STATUS_IGNORE); /* MARK serial */
    }
    return value;
}

static NOINLINE long chore(int round)
{
    const int begin = EARLY + DELAY + OUTSIDE + EARLY;
    long value = round;
    if (rank == 0) {
        step(round, begin + DELAY);
        MPI_Send(&value, 1, MPI_LONG, 1, TASK, WORLD);
    } else {
        step(round, begin);
        MPI_Recv(&value, 1, MPI_LONG, 0, TASK, WORLD, MPI_STATUS_IGNORE); /* MARK task */
    }
    return value;
}

int main(int argc, char **argv)
{
    long sum = 0;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    start_clock();
    REQUIRE(provided == MPI_THREAD_MULTIPLE && omp_get_max_threads() == 2);
    for (int round = 0; round < REPEATS; round++) {
#pragma omp parallel reduction(+ : sum) /* MARK region */
        sum += meet(round, omp_get_thread_num());
        sum += serial(round);
        long done = 0;
#pragma omp parallel /* MARK tasks */
        {
#pragma omp single
            {
#pragma omp task shared(done)
                done = chore(round);
            }
        }
        sum += done;
    }
    finish(REPEATS, sum);
}
