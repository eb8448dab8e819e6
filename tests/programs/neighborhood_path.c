/* Neighbourhood exchanges on a path 0-1-2-3, long enough for the library to keep everybody until all
 * data is there: rank 0 waits for rank 1, its only neighbour, and rank 2 for ranks 1 and 3. The path
 * is a grid, duplicates and a part of one, a graph, and distributed graphs.
 *
 * RUN np=4
 * EXPECT wait_at_nxn at=@first ranks=0 severity=0.240 instances=8 operation=MPI_Neighbor_allgather
 *   cause_rank=1 cause_line=@other because=computed
 * EXPECT wait_at_nxn at=@other ranks=2 severity=0.480 instances=8 cause_rank=1:0.12,3:0.36 cause_line=@other
 * METRIC wait_at_nxn 0.720
 */
#include "common.h"

enum { BYTES = 1 << 20, WAYS = 8 };

static int sides[1] = {4}, grid[2] = {1, 4}, open_ends[2] = {0, 0}, lines[2] = {0, 1};

/* The path, made in one of several ways. */
static MPI_Comm path(int way)
{
    MPI_Comm made = MPI_COMM_NULL, base = MPI_COMM_NULL;
    MPI_Request request;
    int index[4] = {1, 3, 5, 6}, edges[6] = {1, 0, 2, 1, 3, 2}, ones[2] = {1, 1};
    int ends = (rank > 0) + (rank < 3);
    int *neighbours = rank == 0 ? edges : edges + index[rank - 1];
    switch (way) {
    case 0:
        MPI_Cart_create(WORLD, 1, sides, open_ends, 0, &made);
        break;
    case 1:
        MPI_Cart_create(WORLD, 1, sides, open_ends, 0, &base);
        MPI_Comm_dup(base, &made);
        break;
    case 2:
        MPI_Cart_create(WORLD, 1, sides, open_ends, 0, &base);
        MPI_Comm_idup(base, &made, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case 3:
        MPI_Cart_create(WORLD, 2, grid, open_ends, 0, &base);
        MPI_Cart_sub(base, lines, &made);
        break;
    case 4:
        MPI_Graph_create(WORLD, 4, index, edges, 0, &made);
        break;
    case 5:
        MPI_Dist_graph_create(WORLD, 1, &rank, &ends, neighbours, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
        break;
    case 6:
        MPI_Cart_create(WORLD, 1, sides, open_ends, 0, &base);
        MPI_Comm_dup_with_info(base, MPI_INFO_NULL, &made);
        break;
    default:
        MPI_Dist_graph_create_adjacent(WORLD, ends, neighbours, ones, ends, neighbours, ones, MPI_INFO_NULL, 0, &made);
    }
    if (base != MPI_COMM_NULL)
        MPI_Comm_free(&base);
    return made;
}

int main(int argc, char **argv)
{
    long sum = 0;
    char *out = calloc(1, BYTES), *in = calloc(2, BYTES);
    start(&argc, &argv);
    for (int way = 0; way < WAYS; way++) {
        MPI_Comm comm = path(way);
        out[0] = (char)(rank + way);
        at(way + 1, rank == 1 ? 30 : rank == 3 ? 60 : 0);
        if (rank == 0)
            MPI_Neighbor_allgather(out, BYTES, MPI_CHAR, in, BYTES, MPI_CHAR, comm); /* MARK first */
        else
            MPI_Neighbor_allgather(out, BYTES, MPI_CHAR, in, BYTES, MPI_CHAR, comm); /* MARK other */
        sum += in[0] + in[BYTES];
        MPI_Comm_free(&comm);
    }
    finish(WAYS + 1, sum);
}
