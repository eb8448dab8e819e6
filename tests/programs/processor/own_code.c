/* Makes calls that do nothing, so that most of its time is the recording's own, and computes. The first rank says how long
 * it did either, ns of the processor.
 *
 * Run with one rank, or with several that do the same.
 */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { CALLS = 1000 };
static const double PART = 400e6; /* ns */

static volatile double sum;

static double processor(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}

static __attribute__((noinline)) double call(void)
{
    double begin = processor();
    while (processor() < begin + PART)
        for (int n = 0; n < CALLS; n++)
            MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    return processor() - begin;
}

static __attribute__((noinline)) double compute(void)
{
    double begin = processor();
    while (processor() < begin + PART)
        for (int n = 0; n < 100000; n++)
            sum = sum * 0.999 + 1;
    return processor() - begin;
}

int main(int argc, char **argv)
{
    int rank;
    double called, computed;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    called = call();
    computed = compute();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"call\": %.0f, \"compute\": %.0f}\n", called, computed);
    MPI_Finalize();
}
