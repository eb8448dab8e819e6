/* The root cause is a file operation without MPI: rank 0 writes into a full pipe, whose reader takes its
 * time, and the wait for it is passed on.
 *
 * RUN np=3 cflags="-pthread"
 * ROOT io at=@write ranks=0:0.600
 * METRIC late_sender 0.600 tolerance=0.15
 * EXPECT late_sender at=@first ranks=1 severity=0.300 cause_rank=0 because="file"
 */
#include "common.h"
#include "full_pipe.h"

int main(int argc, char **argv)
{
    long sum = 0;
    struct full_pipe pipe;
    start(&argc, &argv);
    if (rank == 0)
        fill(&pipe);
    start_clock();
    if (rank == 0)
        drain_slowly(&pipe);
    for (int round = 0; round < REPEATS; round++) {
        int value = round;
        at(round, 0);
        if (rank == 0) {
            for (int part = 0; part < PARTS; part++)
                REQUIRE(write(pipe.to, block, sizeof block) == sizeof block); /* MARK write */
            MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD);
        } else if (rank == 1) {
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK first */
            MPI_Send(&value, 1, MPI_INT, 2, 0, WORLD);
        } else {
            MPI_Recv(&value, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE);
        }
        REQUIRE(value == round);
        sum += value;
    }
    if (rank == 0)
        end(&pipe);
    finish(REPEATS, sum);
}
