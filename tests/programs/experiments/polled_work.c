/* Rank 0 works before it sends; rank 1 looks for the message again and again, and works meanwhile.
 * MENDED: rank 0 has as much work as rank 1.
 */
#include "../hints/hints.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (int round = 0; round < 10; round++) {
        int value = round, flag = 0;
        MPI_Request request;
        if (rank == 0) {
            work(FLAWED ? 30 : 5);
            MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD);
        } else if (round % 2) {
            MPI_Irecv(&value, 1, MPI_INT, 0, 0, WORLD, &request);
            work(5);
            while (!flag)
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        } else {
            work(5);
            while (!flag)
                MPI_Iprobe(0, 0, WORLD, &flag, MPI_STATUS_IGNORE);
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
        }
    }
    end();
}
