/* Two functions in turn before barriers: solve() takes as long as assemble(), and twice as long on rank 0. Each has a
 * loop of its own, and times are those on the processor: there are as many samples on a busy machine. */
#include "../common.h"

enum { ROUNDS = 40, PART = 10 /* ms */ };

static volatile double sum;

static double processor(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * t.tv_sec + t.tv_nsec / 1e6;
}

NOINLINE static void assemble(double ms)
{
    double end = processor() + ms;
    while (processor() < end)
        for (int n = 0; n < 100000; n++)
            sum = sum * 0.999 + 1;
}

NOINLINE static void solve(double ms)
{
    double end = processor() + ms;
    while (processor() < end)
        for (int n = 0; n < 100000; n++)
            sum = sum * 1.001 + 1;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    for (int round = 0; round < ROUNDS; round++) {
        assemble(PART);
        solve(rank == 0 ? 2 * PART : PART);
        MPI_Barrier(WORLD);
    }
    MPI_Finalize();
    return 0;
}
