/* PEs 1 and 2 write to their files while they hold a lock, or after it. A write takes 6 ms. PE 3
 * keeps the lock's state for Open MPI.
 */
#include "hints.h"
#include "../pes.h"

static long locks[4] __attribute__((aligned(64))), done[2];

int main(void)
{
    long *lock = &locks[3];
    int data = 0;
    char name[64];
    MPI_File file;
    start_shmem();
    snprintf(name, sizeof name, "written-%d", rank);
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    shmem_barrier_all();
    began = now();
    if (rank == 3) {
        serve_until(&done[0]);
        serve_until(&done[1]);
    }
    for (int round = 0; rank % 3 != 0 && round < 12; round++) {
        shmem_set_lock(lock);
        if (FLAWED)
            MPI_File_write(file, &data, 1, MPI_INT, MPI_STATUS_IGNORE);
        shmem_clear_lock(lock);
        if (!FLAWED)
            MPI_File_write(file, &data, 1, MPI_INT, MPI_STATUS_IGNORE);
    }
    if (rank % 3 != 0)
        shmem_long_p(&done[rank - 1], 1, 3);
    shmem_barrier_all();
    if (rank == 0)
        printf("elapsed %.6f\n", now() - began);
    MPI_File_close(&file);
    shmem_finalize();
    return 0;
}
