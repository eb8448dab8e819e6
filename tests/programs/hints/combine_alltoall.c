/* All exchange one number with all in each round, or all numbers after the last. */
#include "hints.h"

enum { ROUNDS = 20, RANKS = 4 };

int main(int argc, char **argv)
{
    double mine[ROUNDS * RANKS] = {0}, all[ROUNDS * RANKS];
    begin(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++) {
        work(rank == round % size ? 10 : 2);
        if (FLAWED)
            MPI_Alltoall(mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, WORLD);
    }
    if (!FLAWED)
        MPI_Alltoall(mine, ROUNDS, MPI_DOUBLE, all, ROUNDS, MPI_DOUBLE, WORLD);
    end();
}
