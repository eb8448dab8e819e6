/* All PEs put to all, each beginning with the same PE, or each with the next one. */
#include "hints.h"
#include "../pes.h"

enum { BYTES = 20000 };
static char mine[BYTES];

int main(void)
{
    char *memory;
    start_shmem();
    memory = shmem_malloc(BYTES);
    shmem_barrier_all();
    began = now();
    for (int round = 0; round < 5; round++) {
        work(rank);
        for (int at = 0; at < size; at++) {
            int target = FLAWED ? at : (rank + 1 + at) % size;
            if (target != rank)
                shmem_putmem(memory, mine, BYTES, target);
        }
        shmem_barrier_all();
    }
    if (rank == 0)
        printf("elapsed %.6f\n", now() - began);
    shmem_free(memory);
    shmem_finalize();
    return 0;
}
