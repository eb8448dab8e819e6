/* A program of OpenSHMEM that ends in some way: by shmem_finalize (0), on its own, when the
 * library finalises itself (1), the first PE on its own and the others by shmem_finalize (2), or
 * with all others by shmem_global_exit (3).
 */
#include "../pes.h"

static long flag;

int main(int argc, char **argv)
{
    int way = argc > 1 ? atoi(argv[1]) : 0;
    start_shmem();
    shmem_long_p(&flag, 7, (rank + 1) % size);
    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 7);
    shmem_barrier_all();
    result(flag);
    fflush(stdout);
    if (way == 3 && rank == 0)
        shmem_global_exit(0);
    if (way == 3)
        sleep(20);
    if (way == 0 || (way == 2 && rank != 0))
        shmem_finalize();
    return 0;
}
