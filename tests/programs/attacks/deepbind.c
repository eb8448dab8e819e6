/* A plugin that is linked with MPI and loaded so that it finds its own libraries' functions before
 * all others. The program must run as ever, though no preloaded library is asked. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#ifdef PLUGIN /* deepbind_plugin.c */
#include <mpi.h>

int plugin(int *argc, char ***argv)
{
    int rank, sum = 0;
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d sum %d\n", rank, sum);
    return MPI_Finalize();
}

#else

int main(int argc, char **argv)
{
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (library == NULL)
        return 1;
    return ((int (*)(int *, char ***))dlsym(library, "plugin"))(&argc, &argv);
}

#endif
