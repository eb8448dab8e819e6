/* Collective file operations: all wait for the last member.
 *
 * RUN np=4
 * EXPECT wait_at_collective_io at=@open ranks=0,1,2 severity=0.360 operation=MPI_File_open cause_rank=3 cause_line=@open
 * EXPECT wait_at_collective_io at=@write ranks=0,1,2 severity=0.360 operation=MPI_File_write_at_all cause_rank=3 cause_line=@write
 * EXPECT wait_at_collective_io at=@read ranks=0,1,2 severity=0.360 operation=MPI_File_read_at_all cause_rank=3 cause_line=@read
 * EXPECT wait_at_collective_io at=@close ranks=0,1,2 severity=0.360 operation=MPI_File_close cause_rank=3 cause_line=@close
 * SILENT wait_at_barrier below=0.030
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    MPI_File file;
    start(&argc, &argv);
    for (int round = 0; round < 8; round++) {
        int value = 100 + rank, back = -1;
        at(round, rank == 3 ? DELAY : 0);
        switch (round % 4) {
        case 0:
            MPI_File_open(WORLD, "collective.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file); /* MARK open */
            break;
        case 1:
            MPI_File_write_at_all(file, 4 * rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE); /* MARK write */
            MPI_File_sync(file);
            break;
        case 2:
            MPI_File_read_at_all(file, 4 * rank, &back, 1, MPI_INT, MPI_STATUS_IGNORE); /* MARK read */
            REQUIRE(back == value);
            break;
        default:
            MPI_File_close(&file); /* MARK close */
        }
        sum += back;
    }
    finish(8, sum);
}
