/* Barriers that take 4 ms longer, as on a large machine, and writes to files that take 6 ms. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

static void take(long ms)
{
    const char *scale = getenv("SCHEDULE_SCALE");
    struct timespec t = {0, (long)((scale ? atof(scale) : 1) * ms * 1000000)};
    while (nanosleep(&t, &t) != 0) {
    }
}

int MPI_Barrier(MPI_Comm communicator)
{
    int result = PMPI_Barrier(communicator);
    take(4);
    return result;
}

int MPI_File_write(MPI_File file, const void *data, int count, MPI_Datatype type,
                   MPI_Status *status)
{
    take(6);
    return PMPI_File_write(file, data, count, type, status);
}
