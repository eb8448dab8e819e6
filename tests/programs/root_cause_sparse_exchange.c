/* A sparse exchange: ranks 0 and 2 look for messages, and whether a barrier is complete, in turn. Rank 1 sends nothing,
 * and comes late to the barrier: they wait for it in all these looks, and not for the next message.
 *
 * RUN np=3
 * ROOT computation at=@late ranks=1:0.600
 * NO_ROOT ranks=0,2
 * METRIC wait_at_barrier_polled 0.600
 * SILENT late_sender_polled+late_receiver_polled below=0.030
 * SILENT looked_in_vain
 */
#include "common.h"

static int look_for_message(int tag)
{
    int found, value = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, tag, WORLD, &found, &status);
    if (found)
        MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, tag, WORLD, MPI_STATUS_IGNORE);
    return value;
}

/* Sends to the other one of ranks 0 and 2, and returns the sum of what it got. */
NOINLINE static int exchange(int round)
{
    int sum = 0, sent = 0, over = 0, value = round + 1;
    MPI_Request send, barrier;
    MPI_Issend(&value, 1, MPI_INT, 2 - rank, round, WORLD, &send);
    while (!over) {
        sum += look_for_message(round);
        if (sent) {
            MPI_Test(&barrier, &over, MPI_STATUS_IGNORE);
        } else {
            MPI_Test(&send, &sent, MPI_STATUS_IGNORE);
            if (sent)
                MPI_Ibarrier(WORLD, &barrier);
        }
        if (!over)
            pass_ms(1);
    }
    return sum;
}

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
        at(round, rank == 1 ? DELAY : 0);
        if (rank == 1) {
            MPI_Request barrier;
            MPI_Ibarrier(WORLD, &barrier); /* MARK late */
            MPI_Wait(&barrier, MPI_STATUS_IGNORE);
        } else {
            int got = exchange(round);
            REQUIRE(got == round + 1);
            sum += got;
        }
    }
    at(REPEATS, 0);
    finish(REPEATS + 1, sum);
}
