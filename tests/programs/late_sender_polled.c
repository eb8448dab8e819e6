/* A rank looks for a message again and again, in every way that there is: it waits for the sender as
 * in a call that blocks. So it does if it sleeps between two looks.
 *
 * RUN np=2
 * EXPECT late_sender_polled at=@test ranks=1:0.060 severity=0.060 instances=1 operation=MPI_Test
 *   cause_rank=0 cause_line=@send cause_operation=MPI_Send because="before the send"
 * EXPECT late_sender_polled at=@all ranks=1:0.060 severity=0.060 instances=1 operation=MPI_Testall
 *   cause_rank=0 cause_line=@send
 * EXPECT late_sender_polled at=@any ranks=1:0.060 severity=0.060 instances=1 operation=MPI_Testany
 *   cause_rank=0 cause_line=@send
 * EXPECT late_sender_polled at=@some ranks=1:0.060 severity=0.060 instances=1 operation=MPI_Testsome
 *   cause_rank=0 cause_line=@send
 * EXPECT late_sender_polled at=@probe ranks=1:0.120 severity=0.120 instances=2 operation=MPI_Iprobe
 *   cause_rank=0 cause_line=@send
 * EXPECT late_sender_polled at=@mprobe ranks=1:0.060 severity=0.060 instances=1
 *   operation=MPI_Improbe cause_rank=0 cause_line=@send
 * METRIC late_sender_polled 0.420
 * ROOT computation at=@send ranks=0:0.420
 * SILENT late_sender below=0.005
 * SILENT late_receiver
 */
#include "common.h"

static long look(int round)
{
    int value[2] = {-1, -1}, flag = 0, index, count, indices[2];
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[2];
    MPI_Message message;
    if (round < 4)
        MPI_Irecv(&value[0], 1, MPI_INT, 0, 0, WORLD, &requests[0]);
    while (!flag) {
        switch (round) {
        case 0: MPI_Test(&requests[0], &flag, &statuses[0]); break; /* MARK test */
        case 1: MPI_Testall(2, requests, &flag, statuses); break; /* MARK all */
        case 2: MPI_Testany(2, requests, &index, &flag, &statuses[0]); break; /* MARK any */
        case 3:
            MPI_Testsome(2, requests, &count, indices, statuses); /* MARK some */
            flag = count == 1;
            break;
        case 4: MPI_Improbe(0, 0, WORLD, &flag, &message, &statuses[0]); break; /* MARK mprobe */
        default: MPI_Iprobe(0, 0, WORLD, &flag, &statuses[0]); /* MARK probe */
        }
        if (round == 6)
            usleep(500);
    }
    if (round == 4)
        MPI_Mrecv(&value[0], 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    if (round > 4)
        MPI_Recv(&value[0], 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
    REQUIRE(value[0] == round && requests[0] == MPI_REQUEST_NULL);
    return value[0];
}

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 7; round++) {
        at(round, rank == 0 ? DELAY : 0);
        if (rank == 0)
            MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD); /* MARK send */
        else
            sum += look(round);
    }
    finish(7, sum);
}
