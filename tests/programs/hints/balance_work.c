/* Rank 3 has most of the work, and all wait for it. */
#include "hints.h"

int main(int argc, char **argv)
{
    double mine = 1, sum;
    begin(&argc, &argv);
    for (int round = 0; round < 10; round++) {
        if (FLAWED)
            work(rank == 3 ? 20 : 4);
        else
            work(8);
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, WORLD);
    }
    end();
}
