/* A communicator with the ranks in reverse: causes and victims are named by their world rank.
 *
 * RUN np=4
 * EXPECT late_sender at=@recv ranks=1 severity=0.300 instances=5 cause_rank=0 cause_line=@send
 * METRIC late_sender 0.300
 * SILENT late_receiver
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    int mine;
    MPI_Comm reversed;
    start(&argc, &argv);
    MPI_Comm_split(WORLD, 0, -rank, &reversed);
    MPI_Comm_rank(reversed, &mine);
    REQUIRE(mine == 3 - rank);
    for (int round = 0; round < REPEATS; round++) {
        int value = -1;
        if (rank == 0) {
            at(round, DELAY);
            MPI_Send(&round, 1, MPI_INT, 2, 0, reversed); /* MARK send */
        } else if (rank == 1) {
            at(round, 0);
            MPI_Recv(&value, 1, MPI_INT, 3, 0, reversed, MPI_STATUS_IGNORE); /* MARK recv */
            REQUIRE(value == round);
        } else if (rank == 2) { /* the same channel in world ranks and another tag: on time */
            at(round, 0);
            MPI_Send(&round, 1, MPI_INT, 0, 0, reversed);
        } else {
            at(round, DELAY);
            MPI_Recv(&value, 1, MPI_INT, 1, 0, reversed, MPI_STATUS_IGNORE);
            REQUIRE(value == round);
        }
        sum += value;
    }
    MPI_Comm_free(&reversed);
    finish(REPEATS, sum);
}
