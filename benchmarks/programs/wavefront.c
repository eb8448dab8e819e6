/* A wavefront over rows: each rank gets one value of a row from the rank before it, works on its
 * columns and gives the value at their end to the next rank, which is a row behind. The last
 * rank gives the corner back to the first, which begins the next sweep with it. The grid is larger
 * than the caches next to a core: what a call needs is far away when it comes. */
#define ROWS 2000
#define COLUMNS 1000
#define CALLS (ROWS + 1)
#include "micro.h"

static double grid[ROWS + 1][COLUMNS + 1];

static void set_up(void) {}

static __attribute__((noinline)) void step(void) {
    double *corner = &grid[ROWS][COLUMNS];
    for (int row = 1; row <= ROWS; row++) {
        double *above = grid[row - 1], *here = grid[row];
        if (rank > 0)
            MPI_Recv(&here[0], 1, MPI_DOUBLE, rank - 1, row, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int column = 1; column <= COLUMNS; column++)
            here[column] = above[column] + here[column - 1] - above[column - 1];
        if (rank < ranks - 1)
            MPI_Send(&here[COLUMNS], 1, MPI_DOUBLE, rank + 1, row, MPI_COMM_WORLD);
    }
    if (rank == ranks - 1)
        MPI_Send(corner, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Recv(&grid[0][0], 1, MPI_DOUBLE, ranks - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
