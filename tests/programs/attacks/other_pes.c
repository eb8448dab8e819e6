/* PEs of OpenSHMEM that are not the ranks of MPI with their numbers: ranks 1 and 2 are PEs 0 and 1.
 * Taken for ranks they would be seen to meet rank 0. Their calls are left out, and what MPI does is
 * reported as ever, also after OpenSHMEM has ended. Rank 1 waits 3 x 60 ms for rank 0.
 */
#include "../common.h"

void shmem_init(void);
int shmem_my_pe(void);
int shmem_n_pes(void);
void shmem_barrier_all(void);
void shmem_finalize(void);

int main(int argc, char **argv)
{
    int value = 0;
    start(&argc, &argv);
    if (rank > 0) {
        shmem_init();
        REQUIRE(shmem_n_pes() == size - 1 && shmem_my_pe() == rank - 1);
    }
    for (int round = 0; round < 3; round++) {
        at(round, rank == 0 ? DELAY : 0);
        if (rank == 0)
            MPI_Send(&round, 1, MPI_INT, 1, 3, WORLD);
        else if (rank == 1)
            MPI_Recv(&value, 1, MPI_INT, 0, 3, WORLD, MPI_STATUS_IGNORE);
        at(round, rank == 2 ? 80 : DELAY + 1);
        if (rank > 0)
            shmem_barrier_all();
        if (rank > 0 && round == 0)
            shmem_finalize(), shmem_init();
    }
    if (rank > 0)
        shmem_finalize();
    finish(3, value);
}
