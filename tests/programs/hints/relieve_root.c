/* The root alone prepares what all need, while the others wait for it. */
#include "hints.h"

int main(int argc, char **argv)
{
    int data = 0;
    begin(&argc, &argv);
    for (int round = 0; round < 10; round++) {
        if (FLAWED)
            work(rank == 0 ? 16 : 0);
        else
            work(4);
        MPI_Bcast(&data, 1, MPI_INT, 0, WORLD);
    }
    end();
}
