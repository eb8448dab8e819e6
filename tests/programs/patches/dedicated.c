/* The second version: the master processes no patches. While the others do, it reads the next
 * patches and writes the last ones.
 */
#include "patches.h"

static void read_round(int round, int workers)
{
    for (int pe = 1; pe <= workers; pe++)
        give(round * workers + pe - 1, round, pe);
}

static void write_round(int round, int workers)
{
    for (int pe = 1; pe <= workers; pe++)
        write_patch(round * workers + pe - 1, &out[pe][round % AHEAD]);
}

static void process_image(void)
{
    int workers = size - 1, rounds = PATCHES / workers;
    if (rank == 0)
        read_round(0, workers);
    for (int round = 0; round < rounds; round++) {
        shmem_barrier_all(); /* MARK round */
        if (rank > 0) {
            process(round * workers + rank - 1, round);
            continue;
        }
        if (round > 0)
            write_round(round - 1, workers);
        if (round + 1 < rounds)
            read_round(round + 1, workers);
    }
    shmem_barrier_all();
    if (rank == 0)
        write_round(rounds - 1, workers);
}

int main(void)
{
    start_patches();
    process_image();
    finish_patches();
    return 0;
}
