/* Loads an MPI library of another family than the one that the collector was built for. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *mpi = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (mpi == NULL)
        return 1;
    int result = ((int (*)(int *, char ***))dlsym(mpi, "MPI_Init"))(&argc, &argv);
    result += ((int (*)(int))dlsym(mpi, "MPI_Barrier"))(0x44000000);
    result += ((int (*)(void))dlsym(mpi, "MPI_Finalize"))();
    printf("result %d\n", result);
    return 0;
}
