/* A graph in which the late rank 3 sends to nobody and only receives.
 *
 * RUN np=4
 * SILENT wait_at_nxn below=0.040
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    MPI_Comm chain;
    start(&argc, &argv);
    int sources[1] = {rank - 1}, targets[1] = {rank + 1}, weights[1] = {1};
    MPI_Dist_graph_create_adjacent(WORLD, rank > 0, sources, weights, rank < 3, targets, weights, MPI_INFO_NULL, 0,
                                   &chain);
    for (int round = 0; round < REPEATS; round++) {
        int out = 10 * round + rank, in = -1;
        at(round, rank == 3 ? DELAY : rank);
        MPI_Neighbor_allgather(&out, 1, MPI_INT, &in, 1, MPI_INT, chain);
        REQUIRE(rank == 0 ? in == -1 : in == out - 1);
        sum += in;
    }
    MPI_Comm_free(&chain);
    finish(REPEATS, sum);
}
