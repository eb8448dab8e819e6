/* In each round another rank is late: without a barrier in each of them that averages out. */
#include "hints.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (int round = 0; round < 20; round++) {
        work(rank == round % size ? 10 : 2);
        if (FLAWED || round == 19)
            MPI_Barrier(WORLD);
    }
    end();
}
