/* In each round both ranks load a library, compute in it, and unload it; rank 0 is longer in it. Argument: the
 * library. Rank 0 says how much longer, ns. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 40 };
static const double PART = 8e6; /* ns */

static double computed(const char *path, double ns)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    double (*compute)(double) = library ? (double (*)(double))dlsym(library, "compute") : NULL;
    if (!compute)
        abort();
    double spent = compute(ns);
    dlclose(library);
    return spent;
}

int main(int argc, char **argv)
{
    int rank;
    double spent = 0, all[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < ROUNDS; round++) {
        spent += computed(argv[1], rank == 0 ? 4 * PART : PART);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Gather(&spent, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"compute\": %.0f}\n", all[0] - all[1]);
    MPI_Finalize();
}
