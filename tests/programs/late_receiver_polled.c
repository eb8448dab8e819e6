/* A rank looks whether its send is complete, which the receive that it waits for is not posted for
 * yet.
 *
 * RUN np=2
 * EXPECT late_receiver_polled at=@test ranks=0:0.300 severity=0.300 instances=5 operation=MPI_Test
 *   cause_rank=1 cause_line=@recv cause_operation=MPI_Recv because="before it posted the receive"
 * ROOT computation at=@recv ranks=1:0.300
 * SILENT late_receiver
 * SILENT late_sender+late_sender_polled
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int value = round, flag = 0;
        at(round, rank == 1 ? DELAY : 0);
        if (rank == 0) {
            MPI_Request request;
            MPI_Issend(&value, 1, MPI_INT, 1, 0, WORLD, &request);
            while (!flag)
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE); /* MARK test */
        } else {
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK recv */
            REQUIRE(value == round);
        }
        sum += value;
    }
    finish(REPEATS, sum);
}
