/* A receive whose buffer is too short fails, and has taken its message: the one after it on the
 * channel is the next message, which is late.
 *
 * RUN np=2
 * EXPECT late_sender at=@recv ranks=1 severity=0.360 instances=9 operation=MPI_Recv
 *   cause_rank=0 cause_line=@send
 * METRIC late_sender 0.360
 */
#include "common.h"

enum { TAG = 4, TOO_LONG = 3, WAYS = 9 };

static int buffer;

static void post(int source, MPI_Request *request)
{
    MPI_Irecv(&buffer, 1, MPI_INT, source, TAG, WORLD, request);
}

/* Receives a message that is too long, each time in another way. */
static int receive(int way)
{
    int index, flag = 0, none = 0, code;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[2];
    switch (way) {
    case 0:
        return MPI_Recv(&buffer, 1, MPI_INT, 0, TAG, WORLD, MPI_STATUS_IGNORE);
    case 1:
        return MPI_Sendrecv(&none, 1, MPI_INT, MPI_PROC_NULL, TAG, &buffer, 1, MPI_INT, MPI_ANY_SOURCE, TAG, WORLD,
                            MPI_STATUS_IGNORE);
    case 2:
        post(0, &requests[0]);
        return MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    case 3:
        post(MPI_ANY_SOURCE, &requests[1]);
        return MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    case 4:
        post(MPI_ANY_SOURCE, &requests[1]);
        do
            code = MPI_Testany(2, requests, &index, &flag, &statuses[0]);
        while (code == MPI_SUCCESS && !flag);
        return code;
    case 5:
        post(0, &requests[1]);
        return MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    case 6:
        post(MPI_ANY_SOURCE, &requests[1]);
        return MPI_Waitsome(2, requests, &index, &none, statuses);
    case 7:
    case 8:
        MPI_Recv_init(&buffer, 1, MPI_INT, MPI_ANY_SOURCE, TAG, WORLD, &requests[0]);
        MPI_Start(&requests[0]);
        code = way == 7 ? MPI_Wait(&requests[0], &statuses[0]) : MPI_Waitall(1, requests, statuses);
        if (requests[0] != MPI_REQUEST_NULL)
            MPI_Request_free(&requests[0]);
        return code;
    }
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int values[TOO_LONG] = {5, 6, 7};
    long sum = 0;
    start(&argc, &argv);
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    for (int round = 0; round < WAYS; round++) {
        if (rank == 0) {
            at(round, 0);
            MPI_Send(values, TOO_LONG, MPI_INT, 1, TAG, WORLD);
            at(round, 60);
            MPI_Send(&round, 1, MPI_INT, 1, TAG, WORLD); /* MARK send */
        } else {
            at(round, 20);
            REQUIRE(receive(round) != MPI_SUCCESS);
            MPI_Recv(&buffer, 1, MPI_INT, 0, TAG, WORLD, MPI_STATUS_IGNORE); /* MARK recv */
            REQUIRE(buffer == round);
            sum += buffer;
        }
    }
    finish(WAYS, sum);
}
