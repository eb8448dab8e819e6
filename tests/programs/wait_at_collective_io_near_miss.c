/* Independent file operations, and a file of one process: nobody can be waited for.
 *
 * RUN np=4
 * SILENT wait_at_collective_io
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    char name[32];
    MPI_File file;
    start(&argc, &argv);
    snprintf(name, sizeof name, "own-%d.dat", rank);
    for (int round = 0; round < 3; round++) {
        int value = 10 * round + rank, back = -1;
        at(round, rank == 3 ? DELAY : 0);
        MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        MPI_File_write_at(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_read_at_all(file, 0, &back, 1, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
        REQUIRE(back == value);
        sum += back;
    }
    finish(3, sum);
}
