/* Many puts to one address, or each to another.
 */
#include "../pes.h"

enum { PUTS = 50000, BYTES = 64 };

int main(int argc, char **argv)
{
    int apart = argc > 1 ? BYTES : 0;
    char mine[BYTES], *theirs;
    (void)argv;
    start_shmem();
    theirs = shmem_malloc((size_t)PUTS * BYTES);
    memset(mine, 1 + rank, BYTES);
    for (int i = 0; i < PUTS; i++)
        shmem_putmem(theirs + (size_t)i * apart, mine, BYTES, (rank + 1) % size);
    shmem_barrier_all();
    result(theirs[5]);
    shmem_finalize();
    return 0;
}
