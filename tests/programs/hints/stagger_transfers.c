/* All ranks transfer to all, each beginning with the same rank, or each with the next one. */
#include "hints.h"

enum { BYTES = 20000 };
static char memory[BYTES], mine[BYTES];

int main(int argc, char **argv)
{
    MPI_Win window;
    begin(&argc, &argv);
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, WORLD, &window);
    MPI_Win_lock_all(0, window);
    MPI_Barrier(WORLD);
    began = now();
    for (int round = 0; round < 5; round++) {
        work(rank);
        for (int at = 0; at < size; at++) {
            int target = FLAWED ? at : (rank + 1 + at) % size;
            if (target != rank)
                MPI_Put(mine, BYTES, MPI_BYTE, target, 0, BYTES, MPI_BYTE, window);
        }
        MPI_Win_flush_all(window);
        MPI_Barrier(WORLD);
    }
    MPI_Barrier(WORLD);
    if (rank == 0)
        printf("elapsed %.6f\n", now() - began);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
}
