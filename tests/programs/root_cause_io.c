/* The root cause is a file operation: rank 0 writes until it is late, and the wait for it is passed on.
 *
 * RUN np=3
 * ROOT io at=@write ranks=0:0.600
 * NO_ROOT ranks=1,2
 * METRIC late_sender 0.600 tolerance=0.15
 */
#include "common.h"

/* Writes until `ms` milliseconds of the round are over. */
static void write_until(MPI_File file, int round, double ms)
{
    static char block[1 << 16];
    while (now() < origin + 1e-3 * schedule_scale * (round * PERIOD + ms))
        MPI_File_write_at(file, 0, block, sizeof block, MPI_CHAR, MPI_STATUS_IGNORE); /* MARK write */
}

int main(int argc, char **argv)
{
    long sum = 0;
    MPI_File file;
    start(&argc, &argv);
    MPI_File_open(MPI_COMM_SELF, rank == 0 ? "written" : "/dev/null",
                  rank == 0 ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    for (int round = 0; round < REPEATS; round++) {
        int value = round;
        at(round, 0);
        if (rank == 0) {
            write_until(file, round, DELAY);
            MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD);
        } else {
            MPI_Recv(&value, 1, MPI_INT, rank - 1, 0, WORLD, MPI_STATUS_IGNORE);
            if (rank < size - 1)
                MPI_Send(&value, 1, MPI_INT, rank + 1, 0, WORLD);
        }
        REQUIRE(value == round);
        sum += value;
    }
    MPI_File_close(&file);
    finish(REPEATS, sum);
}
