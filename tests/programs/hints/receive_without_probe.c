/* Rank 1 looks how long a message is before it receives it, though it knows how long it can be.
 *
 * NOTHING_ELSE: it has no work to do meanwhile.
 */
#include "hints.h"

enum { MOST = 64 };
#ifdef NOTHING_ELSE
enum { WORK = 0 };
#else
enum { WORK = 10 };
#endif

int main(int argc, char **argv)
{
    int data[MOST] = {0}, count = 0;
    MPI_Status status;
    begin(&argc, &argv);
    for (int round = 0; round < 12; round++) {
        if (rank == 0) {
            work(10);
            MPI_Send(data, 1 + round, MPI_INT, 1, 0, WORLD);
            hear(1);
        } else if (FLAWED) {
            MPI_Probe(0, 0, WORLD, &status);
            MPI_Get_count(&status, MPI_INT, &count);
            MPI_Recv(data, count, MPI_INT, 0, 0, WORLD, &status);
            work(WORK);
            tell(0);
        } else {
            MPI_Request request;
            MPI_Irecv(data, MOST, MPI_INT, 0, 0, WORLD, &request);
            work(WORK);
            MPI_Wait(&request, &status);
            MPI_Get_count(&status, MPI_INT, &count);
            tell(0);
        }
        REQUIRE(rank == 0 || count == 1 + round);
    }
    end();
}
