/* Messages without data: who waits for one only synchronises. A late sender and a late receiver of
 * such a message, the latter in MPI_Ssend and in the wait for MPI_Issend. A message with data is no
 * such thing, though the receive has the same length of buffer.
 *
 * RUN np=2
 * EXPECT late_sender_sync at=@empty ranks=0 severity=0.180 operation=MPI_Recv cause_rank=1 cause_line=@send
 * EXPECT late_receiver_sync at=@ssend ranks=0 severity=0.180 operation=MPI_Ssend cause_rank=1 cause_line=@take
 * EXPECT late_receiver_sync at=@wait ranks=0 severity=0.180 operation=MPI_Wait cause_rank=1 cause_line=@take
 * EXPECT late_sender at=@full ranks=0 severity=0.180 cause_rank=1 cause_line=@data
 * EXPECT late_receiver at=@blocked ranks=0 severity=0.180 cause_rank=1 cause_line=@take
 * METRIC late_sender_sync 0.180
 * METRIC late_receiver_sync 0.360
 * METRIC late_sender 0.180
 * METRIC late_receiver 0.180
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    int value = 0;
    MPI_Request request;
    start(&argc, &argv);
    for (int round = 0; round < 15; round++) {
        int what = round % 5;
        at(round, rank == 1 ? DELAY : 0);
        value = round;
        if (rank == 1 && what == 0)
            MPI_Send(&value, 0, MPI_INT, 0, 0, WORLD); /* MARK send */
        else if (rank == 1 && what == 1)
            MPI_Send(&value, 1, MPI_INT, 0, 0, WORLD); /* MARK data */
        else if (rank == 1)
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK take */
        else if (what == 0)
            MPI_Recv(&value, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE); /* MARK empty */
        else if (what == 1)
            MPI_Recv(&value, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE); /* MARK full */
        else if (what == 2)
            MPI_Ssend(&value, 0, MPI_INT, 1, 0, WORLD); /* MARK ssend */
        else if (what == 3) {
            MPI_Issend(&value, 0, MPI_INT, 1, 0, WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE); /* MARK wait */
        } else
            MPI_Ssend(&value, 1, MPI_INT, 1, 0, WORLD); /* MARK blocked */
        sum += value;
    }
    finish(15, sum);
}
