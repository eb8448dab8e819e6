/* A library that is loaded while the program runs and calls MPI itself. */
#include <mpi.h>

int plugin_receive(int source);

int plugin_receive(int source)
{
    int value = -1;
    MPI_Recv(&value, 1, MPI_INT, source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* MARK recv */
    return value;
}
