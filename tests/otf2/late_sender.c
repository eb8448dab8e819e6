/* Rank 0 sends late, thrice in a blocking way and once to a receive with a request. Rank 1
 * prints how long its blocking receives took, s. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

#define ROUNDS 3
#define LATE_US 60000

int main(int argc, char **argv)
{
    int rank, value = 0;
    double waited = 0;
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
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        usleep(LATE_US);
        MPI_Send(&value, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
    } else {
        MPI_Irecv(&value, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        printf("%.9f\n", waited);
    }
    MPI_Finalize();
}
