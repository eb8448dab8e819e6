/* Rank 1 waits for a message, and computes afterwards what does not need it.
 *
 * AS_LATE: rank 2 computes so long that all wait for it anyway; with four ranks rank 3 does so in
 * every other round.
 */
#include "hints.h"

int main(int argc, char **argv)
{
    int data = 0;
    begin(&argc, &argv);
    for (int round = 0; round < 12; round++) {
#ifdef AS_LATE
        MPI_Barrier(WORLD);
        if (rank > 1)
            work(rank == 2 + round % (size - 2) ? 20 : 0);
        else
#endif
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
