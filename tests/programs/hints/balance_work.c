/* Rank 3 has most of the work, and all wait for it.
 *
 * AS_LATE: rank 2 has nearly as much, so that little is gained where rank 3 gives to the others.
 */
#include "hints.h"

int main(int argc, char **argv)
{
    double mine = 1, sum;
    begin(&argc, &argv);
    for (int round = 0; round < 10; round++) {
#if defined AS_LATE
        if (rank == 2)
            work(19.5);
        else if (FLAWED)
            work(rank == 3 ? 20 : 4);
        else
            work(9.3);
#else
        if (FLAWED)
            work(rank == 3 ? 20 : 4);
        else
            work(8);
#endif
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, WORLD);
    }
    end();
}
