/* Works in rounds until the file that its first argument names is there; then, as the second one
 * says, "ends", or ranks wait for each other ("hangs") or for one that computes ("computes") until the
 * first file is gone again. Of "hangs" nothing ends: it is killed. */
#include "../common.h"

static const char *file;

static int is_there(void) { return access(file, F_OK) == 0; }

NOINLINE static void turn(int round)
{
    int value = round;
    /* Rank 1 is late for the others. */
    if (rank == 1)
        pass_ms(20);
    if (rank > 0)
        MPI_Send(&value, 1, MPI_INT, 0, 1, WORLD);
    else
        for (int from = 1; from < size; from++)
            MPI_Recv(&value, 1, MPI_INT, from, 1, WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(WORLD);
}

NOINLINE static void circle(void)
{
    int value;
    MPI_Recv(&value, 1, MPI_INT, (rank + 1) % size, 7, WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    file = argv[1];
    const char *scene = argv[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    int is_over = 0;
    for (int round = 0; !is_over; round++) {
        turn(round);
        is_over = is_there();
        MPI_Bcast(&is_over, 1, MPI_INT, 0, WORLD);
    }
    if (strcmp(scene, "hangs") == 0)
        circle();
    if (strcmp(scene, "computes") == 0) {
        while (rank == 1 && is_there())
            pass_ms(10);
        MPI_Barrier(WORLD);
    }
    MPI_Finalize();
    return 0;
}
