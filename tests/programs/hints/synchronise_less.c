/* In each round another rank is late: without a barrier in each of them that averages out.
 *
 * AS_LATE: the last rank does not take part, and computes as long as all rounds take.
 */
#include "hints.h"

int main(int argc, char **argv)
{
    MPI_Comm members;
    begin(&argc, &argv);
    MPI_Comm_split(WORLD, rank < 4, rank, &members);
    if (rank == 4)
        work(200);
    for (int round = 0; rank < 4 && round < 20; round++) {
        work(rank == round % 4 ? 10 : 2);
        if (FLAWED || round == 19)
            MPI_Barrier(members);
    }
    MPI_Comm_free(&members);
    end();
}
