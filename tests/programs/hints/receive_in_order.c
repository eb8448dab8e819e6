/* Rank 1 sends two messages one after the other; rank 0 wants the later one first.
 *
 * BOTH_NEEDED: it can do nothing before both are there, so that the order does not matter.
 */
#include "hints.h"

int main(int argc, char **argv)
{
    int data = 0;
    begin(&argc, &argv);
    for (int round = 0; round < 10; round++) {
        if (rank == 0) {
            for (int at = 0; at < 2; at++) {
                int tag = FLAWED ? 1 - at : at;
                MPI_Recv(&data, 1, MPI_INT, 1, tag, WORLD, MPI_STATUS_IGNORE);
#ifndef BOTH_NEEDED
                work(10);
            }
#else
            }
            work(20);
#endif
            tell(1);
        } else {
            MPI_Send(&data, 1, MPI_INT, 0, 0, WORLD);
            work(10);
            MPI_Send(&data, 1, MPI_INT, 0, 1, WORLD);
            hear(0);
        }
    }
    end();
}
