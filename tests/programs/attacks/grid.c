/* Ranks in a grid of 2 x 2 x 1 places, the first dimension periodic. Rank 3 is late in each round. Rows, a duplicate and a grid
   that leaves ranks out have grids, too. */
#include <mpi.h>
#include <unistd.h>

enum { ROUNDS = 20 };

int main(int argc, char **argv)
{
    const int sizes[] = {2, 2, 1}, periodic[] = {1, 0, 0}, along_rows[] = {0, 1, 0}, few[] = {3};
    MPI_Comm grid, row, again, part;
    int rank, value;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Cart_create(MPI_COMM_WORLD, 3, sizes, periodic, 0, &grid);
    MPI_Comm_set_name(grid, "blocks");
    MPI_Cart_sub(grid, along_rows, &row);
    MPI_Comm_dup(grid, &again);
    MPI_Cart_create(MPI_COMM_WORLD, 1, few, periodic, 0, &part);
    for (int round = 0; round < ROUNDS; ++round) {
        if (rank == 3)
            usleep(5000);
        MPI_Allreduce(&rank, &value, 1, MPI_INT, MPI_SUM, grid);
    }
    if (part != MPI_COMM_NULL)
        MPI_Barrier(part);
    MPI_Barrier(row);
    MPI_Barrier(again);
    MPI_Finalize();
    return 0;
}
