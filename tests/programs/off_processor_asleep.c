/* Who sleeps between two calls does not compute.
 *
 * RUN np=3 env="LAGGARD_PROCESSOR_TIME=1"
 * EXPECT late_sender at=@recv ranks=1:0.300 severity=0.300 instances=5 cause_rank=0 because="was asleep or blocked"
 * EXPECT late_sender at=@last ranks=2:0.300 severity=0.300 instances=5 cause_rank=1
 * ROOT blocked at=@send ranks=0:0.600
 * NO_ROOT ranks=1,2
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int value = round;
        at(round, rank == 0 ? DELAY : 0);
        if (rank == 0) {
            MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD); /* MARK send */
        } else if (rank == 1) {
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK recv */
            MPI_Send(&value, 1, MPI_INT, 2, 0, WORLD);
        } else {
            MPI_Recv(&value, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE); /* MARK last */
        }
        sum += value;
    }
    finish(REPEATS, sum);
}
