/* All ranks compute equally long: the barrier costs next to nothing.
 *
 * RUN np=4
 * SILENT wait_at_barrier below=0.020
 * SILENT barrier_completion below=0.020
 */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        at(round, DELAY);
        MPI_Barrier(WORLD);
    }
    finish(REPEATS, rank);
}
