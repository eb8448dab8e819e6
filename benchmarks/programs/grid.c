/* A grid of a few MB that threads of OpenMP smooth, and a sum over all ranks after each step.
 *
 * Usage: program STEPS. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000 };
static double old[N][N], new[N][N];

static double smooth(void)
{
    double change = 0;
#pragma omp parallel for reduction(+ : change) schedule(static)
    for (int y = 1; y < N - 1; y++)
        for (int x = 1; x < N - 1; x++) {
            new[y][x] = 0.25 * (old[y - 1][x] + old[y + 1][x] + old[y][x - 1] + old[y][x + 1]);
            change += (new[y][x] - old[y][x]) * (new[y][x] - old[y][x]);
        }
#pragma omp parallel for schedule(static)
    for (int y = 1; y < N - 1; y++)
        for (int x = 1; x < N - 1; x++)
            old[y][x] = new[y][x];
    return change;
}

int main(int argc, char **argv)
{
    double all = 0;
    long steps = argc > 1 ? atol(argv[1]) : 1000;
    MPI_Init(&argc, &argv);
    for (int y = 0; y < N; y++)
        old[y][0] = 1;
    for (long step = 0; step < steps; step++) {
        double own = smooth();
        MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    printf("%g\n", all);
    MPI_Finalize();
}
