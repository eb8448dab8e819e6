/* All threads of a team solve for 20 ms; thread 1 does something else for 10 ms more. Its callers are not
   those of the thread that began the region. */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static __attribute__((noinline)) double spin(double ms)
{
    double end = now() + ms, sum = 0;
    while (now() < end)
        for (int i = 0; i < 50000; i++)
            sum += i * 1e-9;
    return sum;
}

static __attribute__((noinline)) double solve(double ms)
{
    return spin(ms) + 1;
}

static __attribute__((noinline)) double extra(double ms)
{
    return spin(ms) + 2;
}

int main(int argc, char **argv)
{
    double sum = 0;
    MPI_Init(&argc, &argv);
    for (int round = 0; round < 20; round++) {
#pragma omp parallel reduction(+ : sum)
        {
            sum += solve(20) > 0;
            if (omp_get_thread_num() == 1)
                sum += extra(10) > 0;
        }
    }
    MPI_Finalize();
    printf("%.0f\n", sum);
    return 0;
}
