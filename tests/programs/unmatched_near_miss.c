/* Unusual but complete: cancelled receives, freed requests, messages to oneself, PROC_NULL,
 * and receives of zero bytes. No message is missing, nobody waits.
 *
 * RUN np=2
 * SILENT late_sender
 * SILENT late_receiver
 */
#include "common.h"

static int freed = 17;

int main(int argc, char **argv)
{
    long sum = 0;
    int value = -1, cancelled = 0, count = -1;
    MPI_Request request;
    MPI_Status status;
    start(&argc, &argv);

    /* a cancelled receive, and the same channel used afterwards */
    if (rank == 1) {
        MPI_Irecv(&value, 1, MPI_INT, 0, 5, WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        REQUIRE(cancelled && value == -1);
        let_go_on(0);
        at_ms(40);
        MPI_Recv(&value, 1, MPI_INT, 0, 5, WORLD, MPI_STATUS_IGNORE);
        REQUIRE(value == 17);
        sum += value;
    } else {
        go_on_after(1);
        at_ms(20);
        MPI_Isend(&freed, 1, MPI_INT, 1, 5, WORLD, &request);
        MPI_Request_free(&request);
    }

    /* cancelled and freed without a wait; one of them has its message already */
    if (rank == 1) {
        int taken = -1;
        MPI_Irecv(&value, 1, MPI_INT, 0, 8, WORLD, &request);
        MPI_Cancel(&request);
        MPI_Request_free(&request);
        MPI_Barrier(WORLD);
        MPI_Recv(&value, 1, MPI_INT, 0, 8, WORLD, MPI_STATUS_IGNORE);
        REQUIRE(value == 21);
        MPI_Irecv(&taken, 1, MPI_INT, 0, 9, WORLD, &request);
        MPI_Recv(&value, 1, MPI_INT, 0, 8, WORLD, MPI_STATUS_IGNORE);
        MPI_Cancel(&request);
        MPI_Request_free(&request);
        REQUIRE(taken == 22 && value == 23);
        sum += value;
    } else {
        MPI_Barrier(WORLD);
        for (value = 21; value <= 23; value++)
            MPI_Send(&value, 1, MPI_INT, 1, value == 22 ? 9 : 8, WORLD);
    }

    /* a wildcard receive, cancelled too */
    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    REQUIRE(cancelled);

    /* a message to oneself */
    MPI_Isend(&rank, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
    MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    REQUIRE(value == rank);
    sum += value;

    /* a wildcard receive that is found complete, and freed */
    if (rank == 1) {
        int flag = 0;
        MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 7, WORLD, &request);
        while (!flag)
            MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
        REQUIRE(value == 18);
        sum += value;
        /* and one that is waited for after all, twice asked */
        MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 7, WORLD, &request);
        for (flag = 0; !flag;)
            MPI_Request_get_status(request, &flag, &status);
        MPI_Request_get_status(request, &flag, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        REQUIRE(flag && status.MPI_SOURCE == 0 && value == 19);
        MPI_Recv(&value, 1, MPI_INT, 0, 7, WORLD, MPI_STATUS_IGNORE);
        REQUIRE(value == 20);
    } else {
        for (value = 18; value <= 20; value++)
            MPI_Send(&value, 1, MPI_INT, 1, 7, WORLD);
    }

    /* nobody as the partner */
    MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 1, WORLD);
    MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 1, WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    REQUIRE(status.MPI_SOURCE == MPI_PROC_NULL && count == 0);
    MPI_Sendrecv(&value, 1, MPI_INT, MPI_PROC_NULL, 2, &value, 1, MPI_INT, MPI_PROC_NULL, 2, WORLD, &status);
    MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 3, WORLD, &request);
    MPI_Wait(&request, &status);

    /* nothing as the message */
    if (rank == 0) {
        at_ms(60);
        MPI_Send(NULL, 0, MPI_INT, 1, 6, WORLD);
    } else {
        at_ms(80);
        MPI_Recv(NULL, 0, MPI_INT, 0, 6, WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        REQUIRE(count == 0);
    }
    finish(1, sum);
}
