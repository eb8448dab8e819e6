/* An error handler leaves an MPI call by longjmp; what is called afterwards is recorded.
 * Rank 1 waits for rank 0 in a receive after the jump: 3 x 60 ms. */
#include "../common.h"
#include <setjmp.h>

static jmp_buf back;

static void jump(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    longjmp(back, *code != MPI_SUCCESS ? 1 : 2);
}

int main(int argc, char **argv)
{
    MPI_Comm copy;
    MPI_Errhandler handler;
    volatile int jumps = 0;
    static long sum;
    start(&argc, &argv);
    MPI_Comm_dup(WORLD, &copy);
    MPI_Comm_create_errhandler(jump, &handler);
    MPI_Comm_set_errhandler(copy, handler);
    for (volatile int i = 0; i < 100; i++) {
        int jumped = setjmp(back);
        if (jumped == 0) {
            MPI_Send(&rank, 1, MPI_INT, 1234, 0, copy); /* no such rank */
            REQUIRE(0);
        }
        REQUIRE(jumped == 1);
        jumps++;
    }
    start_clock();
    for (int round = 0; round < 3; round++) {
        int value = -1;
        at(round, rank == 0 ? DELAY : 0);
        if (rank == 0)
            MPI_Send(&round, 1, MPI_INT, 1, 0, copy);
        else
            MPI_Recv(&value, 1, MPI_INT, 0, 0, copy, MPI_STATUS_IGNORE);
        sum += value;
    }
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&copy);
    finish(3, sum + 1000 * jumps);
}
