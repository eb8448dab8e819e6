/* Rank 1 waits for a message, and computes afterwards what does not need it. */
#include "hints.h"

int main(int argc, char **argv)
{
    int data = 0;
    begin(&argc, &argv);
    for (int round = 0; round < 12; round++) {
        if (rank == 0) {
            work(10);
            MPI_Send(&data, 1, MPI_INT, 1, 0, WORLD);
            hear(1);
        } else if (FLAWED) {
            MPI_Recv(&data, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
            work(10);
            tell(0);
        } else {
            MPI_Request request;
            MPI_Irecv(&data, 1, MPI_INT, 0, 0, WORLD, &request);
            work(10);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            tell(0);
        }
    }
    end();
}
