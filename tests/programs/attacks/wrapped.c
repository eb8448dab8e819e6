/* Rank 1 waits 3 x 60 ms for rank 0; another tool wraps the calls, too. */
#include "../common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 3; round++) {
        int value = -1;
        at(round, rank == 0 ? DELAY : 0);
        if (rank == 0)
            MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD);
        else
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
        sum += value;
    }
    finish(3, sum);
}
