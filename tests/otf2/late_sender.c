/* Rank 0 sends late: thrice to a blocking receive, twice to a persistent one, and once to one
 * with a request that MPI_Wait sets to null. Each message tells when it is sent. Rank 1 prints how
 * long before that the blocking receives began, and the waits for the persistent one, s. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

#define ROUNDS 3
#define PERSISTENT_ROUNDS 2
#define LATE_US 60000

static double sent;

static void send_late(int tag)
{
    usleep(LATE_US);
    sent = MPI_Wtime();
    MPI_Send(&sent, 1, MPI_DOUBLE, 1, tag, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank;
    double waited = 0, waited_persistent = 0;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            send_late(7);
        } else {
            double begin = MPI_Wtime();
            MPI_Recv(&sent, 1, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            waited += sent - begin;
        }
    }
    if (rank == 1)
        MPI_Recv_init(&sent, 1, MPI_DOUBLE, 0, 9, MPI_COMM_WORLD, &request);
    for (int i = 0; i < PERSISTENT_ROUNDS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            send_late(9);
        } else {
            MPI_Start(&request);
            double begin = MPI_Wtime();
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            waited_persistent += sent - begin;
        }
    }
    if (rank == 1)
        MPI_Request_free(&request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        send_late(8);
    } else {
        MPI_Irecv(&sent, 1, MPI_DOUBLE, 0, 8, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        printf("%.9f %.9f\n", waited, waited_persistent);
    }
    MPI_Finalize();
}
