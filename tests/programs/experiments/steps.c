/* A program of which there are revisions and sizes. Steps of it: rank 0 prepares alone, the others
 * wait for its broadcast; all work; a rank is late for the reduction.
 *
 *     steps [work of all ranks together in a step, ms] [work of each, ms]
 *
 * REVISED: less to prepare, by LESS ms; the code is elsewhere in its function, and a function has
 * another name.
 */
#include "../common.h"

enum { STEPS = 6, PREPARE = 30, LATE = 15, LESS = 20 };

#ifdef REVISED
#define DELAYED (PREPARE - LESS)
#define reduce sum_up
#else
#define DELAYED PREPARE
#endif

static NOINLINE long distribute(int step)
{
    long task = step + 1;
    if (rank == 0)
        pass_ms(DELAYED);
#ifdef REVISED
#line 99
#endif
    MPI_Bcast(&task, 1, MPI_LONG, 0, WORLD); /* MARK broadcast */
    return task;
}

static NOINLINE long reduce(long mine)
{
    long sum;
    if (rank == size - 1)
        pass_ms(LATE);
#ifdef REVISED
#line 199
#endif
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, WORLD); /* MARK reduction */
    return sum;
}

int main(int argc, char **argv)
{
    double of_all = argc > 1 ? atof(argv[1]) : 0, of_each = argc > 2 ? atof(argv[2]) : 0;
    long sum = 0;
    start(&argc, &argv);
    for (int step = 0; step < STEPS; step++) {
        long task = distribute(step);
        pass_ms(of_all / size + of_each);
        sum += reduce(task * (rank + 1));
    }
    result(sum);
    MPI_Finalize();
    return 0;
}
