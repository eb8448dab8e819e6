/* A communicator is made in each round, or once. */
#include "hints.h"

int main(int argc, char **argv)
{
    MPI_Comm own = MPI_COMM_NULL;
    begin(&argc, &argv);
    for (int round = 0; round < 20; round++) {
        work(rank == round % size ? 10 : 2);
        if (FLAWED && own != MPI_COMM_NULL)
            MPI_Comm_free(&own);
        if (FLAWED || round == 0)
            MPI_Comm_dup(WORLD, &own);
        REQUIRE(own != MPI_COMM_NULL);
    }
    end();
}
