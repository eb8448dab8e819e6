/* Who looks again and again for a message without data only synchronises, as who waits for it in one
 * call does: a late sender, a late receiver, and the late end of an epoch without transfers. With data
 * it is no such thing, though the receive has the same length of buffer.
 *
 * RUN np=2
 * EXPECT late_sender_sync_polled at=@receive ranks=0 severity=0.120 instances=2 operation=MPI_Test
 *   cause_rank=1 cause_line=@empty
 * EXPECT late_sender_polled at=@receive ranks=0 severity=0.120 instances=2 operation=MPI_Test
 *   cause_rank=1 cause_line=@data
 * EXPECT late_receiver_sync_polled at=@send ranks=0 severity=0.120 instances=2 operation=MPI_Test
 *   cause_rank=1 cause_line=@take
 * EXPECT late_receiver_polled at=@send ranks=0 severity=0.120 instances=2 operation=MPI_Test
 *   cause_rank=1 cause_line=@take
 * EXPECT early_wait_sync_polled at=@epoch ranks=0 severity=0.120 instances=2 operation=MPI_Win_test
 *   cause_rank=1 cause_line=@complete
 * EXPECT early_wait_polled at=@epoch ranks=0 severity=0.120 instances=2 operation=MPI_Win_test
 *   cause_rank=1 cause_line=@complete
 * METRIC late_sender_sync_polled 0.120
 * METRIC late_receiver_sync_polled 0.120
 * METRIC early_wait_sync_polled 0.120
 * METRIC late_sender_polled 0.120
 * METRIC late_receiver_polled 0.120
 * METRIC early_wait_polled 0.120
 * SILENT late_sender_sync+late_receiver_sync+early_wait_sync below=0.005
 */
#include "common.h"

enum { RECEIVE, SEND, EPOCH, KINDS };

static MPI_Win window;
static MPI_Group other;

/* Rank 0 begins at once, and looks from a fifth of the delay on. */
static void look(int kind, int round, int count, int *value)
{
    int found = 0;
    MPI_Request request;
    if (kind == RECEIVE)
        MPI_Irecv(value, 1, MPI_INT, 1, 0, WORLD, &request);
    else if (kind == SEND)
        MPI_Issend(value, count, MPI_INT, 1, 0, WORLD, &request);
    else
        MPI_Win_post(other, 0, window);
    at(round, 0.2 * DELAY);
    while (!found) {
        if (kind == RECEIVE)
            MPI_Test(&request, &found, MPI_STATUS_IGNORE); /* MARK receive */
        else if (kind == SEND)
            MPI_Test(&request, &found, MPI_STATUS_IGNORE); /* MARK send */
        else
            MPI_Win_test(window, &found); /* MARK epoch */
    }
}

static void come_late(int kind, int round, int count, int *value)
{
    if (kind == EPOCH) {
        at(round, 0.1 * DELAY);
        MPI_Win_start(other, 0, window);
        if (count > 0)
            MPI_Put(value, count, MPI_INT, 0, 0, count, MPI_INT, window);
    }
    at(round, 1.2 * DELAY);
    if (kind == SEND)
        MPI_Recv(value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK take */
    else if (kind == EPOCH)
        MPI_Win_complete(window); /* MARK complete */
    else if (count > 0)
        MPI_Send(value, count, MPI_INT, 0, 0, WORLD); /* MARK data */
    else
        MPI_Send(value, count, MPI_INT, 0, 0, WORLD); /* MARK empty */
}

int main(int argc, char **argv)
{
    long sum = 0;
    int memory = 0;
    MPI_Group world;
    start(&argc, &argv);
    MPI_Comm_group(WORLD, &world);
    MPI_Group_incl(world, 1, (int[]){1 - rank}, &other);
    MPI_Win_create(&memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window);
    start_clock();
    for (int round = 0; round < 4 * KINDS; round++) {
        int kind = round % KINDS, value = round, count = round / KINDS % 2;
        at(round, 0);
        (rank == 0 ? look : come_late)(kind, round, count, &value);
        sum += value + memory;
    }
    at(4 * KINDS, 0);
    MPI_Win_free(&window);
    MPI_Group_free(&world);
    MPI_Group_free(&other);
    finish(4 * KINDS, sum);
}
