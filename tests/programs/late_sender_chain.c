/* The late sender was itself waiting: the report says so at the end of the chain.
 *
 * RUN np=3
 * EXPECT late_sender at=@middle ranks=1 severity=0.300 instances=5 cause_rank=0 cause_line=@first
 * EXPECT late_sender at=@last ranks=2 severity=0.300 instances=5 cause_rank=1 cause_line=@second because="MPI_Recv"
 * METRIC late_sender 0.600
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int value = -1;
        at(round, rank == 0 ? DELAY : 0);
        if (rank == 0) {
            MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD); /* MARK first */
        } else if (rank == 1) {
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK middle */
            MPI_Send(&value, 1, MPI_INT, 2, 0, WORLD); /* MARK second */
        } else {
            MPI_Recv(&value, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE); /* MARK last */
        }
        REQUIRE(rank == 0 || value == round);
        sum += value;
    }
    finish(REPEATS, sum);
}
