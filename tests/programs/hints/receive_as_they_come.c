/* Rank 0 receives from rank 1, which is late, before it takes what rank 2 sent long ago.
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
            for (int other = 1; other <= 2; other++) {
                int source = FLAWED ? other : MPI_ANY_SOURCE;
                MPI_Recv(&data, 1, MPI_INT, source, 0, WORLD, MPI_STATUS_IGNORE);
#ifndef BOTH_NEEDED
                work(10);
            }
#else
            }
            work(20);
#endif
            tell(1);
            tell(2);
        } else {
            if (rank == 1)
                work(10);
            MPI_Send(&data, 1, MPI_INT, 0, 0, WORLD);
            hear(0);
        }
    }
    end();
}
