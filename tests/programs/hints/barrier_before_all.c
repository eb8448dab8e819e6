/* A barrier directly before a reduction in which all wait for all anyway. Barriers take 4 ms. */
#include "hints.h"

int main(int argc, char **argv)
{
    double mine = 1, sum;
    begin(&argc, &argv);
    for (int round = 0; round < 20; round++) {
        work(3);
        if (FLAWED)
            MPI_Barrier(WORLD);
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, WORLD);
    }
    end();
}
