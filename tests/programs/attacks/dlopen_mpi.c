/* The program is not linked with MPI: it loads it, as interpreters do. It must run as ever,
 * whether its calls can be seen or not. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *mpi = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
    int (*init)(int *, char ***), (*finalize)(void), (*initialized)(int *), flag = -1, after = -1;
    if (mpi == NULL)
        return 1;
    init = (int (*)(int *, char ***))dlsym(mpi, "MPI_Init");
    finalize = (int (*)(void))dlsym(mpi, "MPI_Finalize");
    initialized = (int (*)(int *))dlsym(RTLD_DEFAULT, "MPI_Initialized");
    initialized(&flag);
    init(&argc, &argv);
    initialized(&after);
    printf("initialized %d %d\n", flag, after);
    return finalize();
}
