/* A rank looks for a message again and again, and between two looks tests or waits for requests that are null: it waits
 * for the sender all the time.
 *
 * RUN np=2
 * EXPECT late_sender_polled at=@wait ranks=1:0.060 severity=0.060 instances=1 operation=MPI_Test
 *   cause_rank=0 cause_line=@send because="before the send"
 * EXPECT late_sender_polled at=@test ranks=1:0.060 severity=0.060 instances=1 operation=MPI_Test
 *   cause_rank=0 cause_line=@send
 * EXPECT late_sender_polled at=@some ranks=1:0.060 severity=0.060 instances=1 operation=MPI_Testsome
 *   cause_rank=0 cause_line=@send
 * EXPECT late_sender_polled at=@probe ranks=1:0.060 severity=0.060 instances=1 operation=MPI_Iprobe
 *   cause_rank=0 cause_line=@send
 * METRIC late_sender_polled 0.240
 * ROOT computation at=@send ranks=0:0.240
 * SILENT late_sender below=0.005
 * SILENT late_receiver
 */
#include "common.h"

/* So short that it counts as looking: fewer looks. */
static void pause_shortly(void)
{
    for (volatile int i = 0; i < 400; i++)
        ;
}

static int test(MPI_Request *request)
{
    int flag = 0;
    MPI_Test(request, &flag, MPI_STATUS_IGNORE); /* MARK test */
    return flag;
}

static long look(int round)
{
    int value = -1, flag = 0, count, index;
    MPI_Request request = MPI_REQUEST_NULL, null[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (round < 3)
        MPI_Irecv(&value, 1, MPI_INT, 0, 0, WORLD, &request);
    while (!flag) {
        pause_shortly();
        switch (round) {
        case 0:
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE); /* MARK wait */
            MPI_Wait(&null[0], MPI_STATUS_IGNORE);
            break;
        case 1:
            /* The same line tests both. */
            flag = test(&request);
            test(&null[0]);
            break;
        case 2:
            MPI_Testsome(1, &request, &count, &index, MPI_STATUSES_IGNORE); /* MARK some */
            flag = count == 1;
            MPI_Waitall(2, null, MPI_STATUSES_IGNORE);
            test(&null[1]);
            break;
        default:
            MPI_Iprobe(0, 0, WORLD, &flag, MPI_STATUS_IGNORE); /* MARK probe */
            /* An archive tells that a probe found something by the receive that comes next. */
            if (!flag)
                MPI_Waitall(0, null, MPI_STATUSES_IGNORE);
        }
    }
    if (round == 3)
        MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
    REQUIRE(value == round && request == MPI_REQUEST_NULL);
    return value;
}

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 4; round++) {
        at(round, rank == 0 ? DELAY : 0);
        if (rank == 0)
            MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD); /* MARK send */
        else
            sum += look(round);
    }
    finish(4, sum);
}
