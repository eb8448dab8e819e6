/* A barrier directly before a broadcast: rank 0 need not wait for the others, nor they for each
 * other, of whom now one is slow and now the other.
 */
#include "hints.h"

int main(int argc, char **argv)
{
    int data = 0;
    begin(&argc, &argv);
    for (int round = 0; round < 20; round++) {
        work(rank == 1 + round % 2 ? 10 : 2);
        if (FLAWED)
            MPI_Barrier(WORLD);
        MPI_Bcast(&data, 1, MPI_INT, 0, WORLD);
    }
    end();
}
