/* The first version: the master reads and writes, and processes patches as all others do. */
#include "patches.h"

static void write_round(int round)
{
    for (int pe = 0; pe < size; pe++)
        write_patch(round * size + pe, &out[pe][round % AHEAD]);
}

static void process_image(void)
{
    int rounds = PATCHES / size;
    for (int round = 0; round < rounds; round++) {
        for (int pe = 0; rank == 0 && pe < size; pe++)
            give(round * size + pe, round, pe);
        shmem_barrier_all(); /* MARK patches read */
        if (rank == 0 && round > 0)
            write_round(round - 1);
        process(round * size + rank, round);
        shmem_barrier_all(); /* MARK patches filtered */
    }
    if (rank == 0)
        write_round(rounds - 1);
}

int main(void)
{
    start_patches();
    process_image();
    finish_patches();
    return 0;
}
