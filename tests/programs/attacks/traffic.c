/* Every way in which messages are sent, received and completed, a few collectives, and one
 * late sender, for tests of what is passed on to other tools. On 4 ranks, each of ROUNDS rounds:
 *
 *   what                                                     messages  bytes
 *   Sendrecv around the ring                                        4     32
 *   a late Send from 0 to 1                                         1    100
 *   Isend and Irecv in pairs, Waitall                               4   4000
 *   Ssend to wildcards of 0, a Recv behind them, Waitall            4     16
 *   persistent requests between 2 and 3, Startall                   2     32
 *
 * and at the end a message that nobody receives, of 4 bytes. */
#include "../common.h"

enum { ROUNDS = 10, LATE = 20 };

static char in[1000], out[1000];

NOINLINE static void ring(void)
{
    long value = rank, other = -1;
    MPI_Sendrecv(&value, 1, MPI_LONG, (rank + 1) % size, 1, &other, 1, MPI_LONG,
                 (rank + size - 1) % size, 1, WORLD, MPI_STATUS_IGNORE);
    REQUIRE(other == (rank + size - 1) % size);
}

NOINLINE static void late(void)
{
    if (rank == 0) {
        go_on_after(1);
        pass_ms(LATE);
        MPI_Send(out, 100, MPI_CHAR, 1, 2, WORLD);
    } else if (rank == 1) {
        let_go_on(0);
        MPI_Recv(in, 100, MPI_CHAR, 0, 2, WORLD, MPI_STATUS_IGNORE);
    }
}

NOINLINE static void pairs(MPI_Comm half)
{
    MPI_Request requests[2];
    int other, own;
    MPI_Comm_rank(half, &own);
    other = 1 - own;
    MPI_Irecv(in, 1000, MPI_CHAR, other, 3, half, &requests[0]);
    MPI_Isend(out, 1000, MPI_CHAR, other, 3, half, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

NOINLINE static void wildcards(void)
{
    MPI_Request requests[3];
    int values[3], last = rank, i;
    if (rank == 0)
        for (i = 0; i < 3; i++)
            MPI_Irecv(&values[i], 1, MPI_INT, MPI_ANY_SOURCE, 7, WORLD, &requests[i]);
    else
        MPI_Ssend(&rank, 1, MPI_INT, 0, 7, WORLD);
    /* All three have their message, and nobody has looked. */
    MPI_Barrier(WORLD);
    if (rank == 2)
        MPI_Send(&last, 1, MPI_INT, 0, 7, WORLD);
    if (rank == 0) {
        MPI_Recv(&last, 1, MPI_INT, 2, 7, WORLD, MPI_STATUS_IGNORE);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        REQUIRE(last == 2 && values[0] + values[1] + values[2] == 6);
    }
}

int main(int argc, char **argv)
{
    MPI_Request persistent[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, request;
    MPI_Comm half;
    int i, nobody = 0, found = 0;
    long sum = 0, one = 1;
    MPI_Init(&argc, &argv);
    start_clock();
    MPI_Comm_split(WORLD, rank / 2, rank, &half);
    MPI_Comm_set_name(half, "half");
    if (rank >= 2) {
        MPI_Send_init(out, 16, MPI_CHAR, 5 - rank, 4, WORLD, &persistent[0]);
        MPI_Recv_init(in, 16, MPI_CHAR, 5 - rank, 4, WORLD, &persistent[1]);
    }
    for (i = 0; i < ROUNDS; i++) {
        ring();
        late();
        pairs(half);
        wildcards();
        if (rank >= 2) {
            MPI_Startall(2, persistent);
            MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
        }
        MPI_Iallreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        REQUIRE(sum == 4);
        MPI_Iprobe(MPI_ANY_SOURCE, 98, WORLD, &found, MPI_STATUS_IGNORE);
        REQUIRE(!found);
    }
    if (rank >= 2)
        for (i = 0; i < 2; i++)
            MPI_Request_free(&persistent[i]);
    if (rank == 0)
        MPI_Send(&nobody, 1, MPI_INT, 3, 99, WORLD);
    MPI_Comm_free(&half);
    result(sum);
    MPI_Finalize();
    return 0;
}
