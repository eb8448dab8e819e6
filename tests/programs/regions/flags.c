/* Ranks wait in loops of their own for flags in a window: rank 1 looks at its own memory, which
 * rank 0 puts into; ranks 2 and 3 look at a flag in rank 0's by MPI_Fetch_and_op, which rank 1 adds
 * to, and leave the loop late: meanwhile rank 0 writes beside it. What others do to look at the
 * flag is no write.
 */
#include "../common.h"

/* MPICH 4.0.2 puts elsewhere where the memory of a rank is no multiple of 16 bytes. */
enum { OWN, SHARED, BESIDE, FLAGS = 4 };

static MPI_Win window;
static int *memory;

/* Lets the library go on with what others do to this rank's memory. */
static void serve(void)
{
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &found, MPI_STATUS_IGNORE);
}

NOINLINE void spin_own(volatile int *flag, int value)
{
    while (*flag < value) {
        usleep(200);
        serve();
        MPI_Win_sync(window);
    }
}

NOINLINE void spin_shared(int value)
{
    int found = 0;
    while (found < value) {
        usleep(500);
        MPI_Fetch_and_op(NULL, &found, MPI_INT, 0, SHARED, MPI_NO_OP, window);
        MPI_Win_flush(0, window);
    }
    pass_ms(20);
}

int main(int argc, char **argv)
{
    int one = 1;
    start(&argc, &argv);
    MPI_Win_allocate(FLAGS * sizeof(int), sizeof(int), MPI_INFO_NULL, WORLD, &memory, &window);
    memset(memory, 0, FLAGS * sizeof(int));
    MPI_Barrier(WORLD);
    MPI_Win_lock_all(0, window);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
        int value = round + 1;
        at(2 * round, rank == 0 ? 60 : 0);
        if (rank == 0) {
            MPI_Put(&value, 1, MPI_INT, 1, OWN, 1, MPI_INT, window); /* MARK put */
            MPI_Win_flush(1, window);
        } else if (rank == 1) {
            spin_own(&memory[OWN], value); /* MARK own */
        }
        if (rank == 0)
            at_serving(2 * round, 170);
        at(2 * round, rank == 1 ? 160 : rank == 0 ? 170 : 100);
        if (rank == 1)
            MPI_Accumulate(&one, 1, MPI_INT, 0, SHARED, 1, MPI_INT, MPI_SUM, window); /* MARK add */
        else if (rank == 0)
            MPI_Accumulate(&one, 1, MPI_INT, 0, BESIDE, 1, MPI_INT, MPI_SUM, window);
        else
            spin_shared(value); /* MARK shared */
        if (rank < 2)
            MPI_Win_flush(0, window);
        if (rank == 0)
            at_serving(2 * round, 190);
    }
    at(2 * REPEATS, 0);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    finish(2 * REPEATS + 1, rank);
}
