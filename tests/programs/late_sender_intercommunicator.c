/* In an intercommunicator the destination is a rank of the other group.
 *
 * RUN np=4
 * EXPECT late_sender at=@recv ranks=3 severity=0.300 instances=5 cause_rank=0 cause_line=@send
 * METRIC late_sender 0.300
 * SILENT late_receiver
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    int upper, remote;
    MPI_Comm local, inter;
    start(&argc, &argv);
    upper = rank >= 2;
    MPI_Comm_split(WORLD, upper, rank, &local);
    MPI_Intercomm_create(local, 0, WORLD, upper ? 0 : 2, 7, &inter);
    MPI_Comm_remote_size(inter, &remote);
    REQUIRE(remote == 2);
    for (int round = 0; round < REPEATS; round++) {
        int value = -1;
        if (rank == 0) {
            at(round, DELAY);
            MPI_Send(&round, 1, MPI_INT, 1, 0, inter); /* MARK send */
        } else if (rank == 3) {
            MPI_Status status;
            at(round, 0);
            MPI_Recv(&value, 1, MPI_INT, 0, 0, inter, &status); /* MARK recv */
            REQUIRE(value == round && status.MPI_SOURCE == 0);
        }
        sum += value;
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
    finish(REPEATS, sum);
}
