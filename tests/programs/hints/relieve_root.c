/* The root alone prepares what all need, while the others wait for it.
 *
 * AS_LATE: rank 3 has as much to do on its own.
 */
#include "hints.h"

int main(int argc, char **argv)
{
    int data = 0;
    begin(&argc, &argv);
    for (int round = 0; round < 10; round++) {
#ifdef AS_LATE
        if (rank == 3)
            work(16);
        else if (!FLAWED)
            work(5.3);
        else if (rank == 0)
            work(16);
#else
        if (FLAWED)
            work(rank == 0 ? 16 : 0);
        else
            work(4);
#endif
        MPI_Bcast(&data, 1, MPI_INT, 0, WORLD);
    }
    end();
}
