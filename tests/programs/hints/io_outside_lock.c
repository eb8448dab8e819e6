/* Ranks 1 and 2 write to their files while they hold the lock on rank 0's window, or after it.
 * A write takes 6 ms.
 */
#include "hints.h"

int main(int argc, char **argv)
{
    int memory[4] = {0}, data = 0;
    char name[64];
    MPI_Win window;
    MPI_File file;
    begin(&argc, &argv);
    snprintf(name, sizeof name, "written-%d", rank);
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window);
    MPI_Barrier(WORLD);
    began = now();
    for (int round = 0; rank != 0 && round < 12; round++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Put(&rank, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
        if (FLAWED)
            MPI_File_write(file, &data, 1, MPI_INT, MPI_STATUS_IGNORE);
        MPI_Win_unlock(0, window);
        if (!FLAWED)
            MPI_File_write(file, &data, 1, MPI_INT, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(WORLD);
    if (rank == 0)
        printf("elapsed %.6f\n", now() - began);
    MPI_Win_free(&window);
    MPI_File_close(&file);
    MPI_Finalize();
}
