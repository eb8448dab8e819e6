/* Rank 0 waits until its message is received, and computes afterwards what does not change it. */
#include "hints.h"

int main(int argc, char **argv)
{
    int data = 0;
    begin(&argc, &argv);
    for (int round = 0; round < 12; round++) {
        if (rank == 1) {
            work(10);
            MPI_Recv(&data, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
            hear(0);
        } else if (FLAWED) {
            MPI_Ssend(&data, 1, MPI_INT, 1, 0, WORLD);
            work(10);
            tell(1);
        } else {
            MPI_Request request;
            MPI_Issend(&data, 1, MPI_INT, 1, 0, WORLD, &request);
            work(10);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            tell(1);
        }
    }
    end();
}
