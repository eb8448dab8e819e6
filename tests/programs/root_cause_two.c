/* Two root causes in one chain: rank 0 is 40 ms late, and rank 1 takes 20 ms more before it passes the
 * message on. Rank 1 waits 40 ms, rank 2 waits 60 ms: 40 of these because of rank 0.
 *
 * RUN np=3
 * ROOT computation at=@first ranks=0:0.400
 * ROOT computation at=@second ranks=1:0.100
 * METRIC late_sender 0.500
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int value = round;
        at(round, rank == 0 ? 40 : 0);
        if (rank == 0) {
            MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD); /* MARK first */
        } else if (rank == 1) {
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
            at(round, 60);
            MPI_Send(&value, 1, MPI_INT, 2, 0, WORLD); /* MARK second */
        } else {
            MPI_Recv(&value, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE);
        }
        REQUIRE(value == round);
        sum += value;
    }
    finish(REPEATS, sum);
}
