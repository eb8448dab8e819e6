/* Rank 0 sends late: thrice to a blocking receive, twice to a persistent one, and once to one
 * with a request that MPI_Wait sets to null. Rank 1 prints how long the blocking receives took
 * and how long the waits for the persistent one, s. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

#define ROUNDS 3
#define PERSISTENT_ROUNDS 2
#define LATE_US 60000

int main(int argc, char **argv)
{
    int rank, value = 0;
    double waited = 0, waited_persistent = 0;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            usleep(LATE_US);
            MPI_Send(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
        } else {
            double begin = MPI_Wtime();
            MPI_Recv(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            waited += MPI_Wtime() - begin;
        }
    }
    if (rank == 1)
        MPI_Recv_init(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, &request);
    for (int i = 0; i < PERSISTENT_ROUNDS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            usleep(LATE_US);
            MPI_Send(&value, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
        } else {
            MPI_Start(&request);
            double begin = MPI_Wtime();
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            waited_persistent += MPI_Wtime() - begin;
        }
    }
    if (rank == 1)
        MPI_Request_free(&request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        usleep(LATE_US);
        MPI_Send(&value, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
    } else {
        MPI_Irecv(&value, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        printf("%.9f %.9f\n", waited, waited_persistent);
    }
    MPI_Finalize();
}
