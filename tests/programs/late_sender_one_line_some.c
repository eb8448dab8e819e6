/* Of the two calls that the compiler made of a line only the second one waits. The report counts
 * the calls of the line, not of those copies of it that lost time. Other calls stand between, so
 * that the first one is not what follows a slow call.
 *
 * RUN np=2
 * EXPECT late_sender at=@recv ranks=1 severity=0.180 instances=3 cause_rank=0 cause_line=@send
 * METRIC late_sender 0.180
 * SAYS text="in 3 of 6 calls"
 */
#include "common.h"

enum { ROUNDS = 6 };

/* The same statement twice, as copies of a loop's body. */
#define UNROLLED(body) do { body; turn++; body; turn++; } while (0)

int main(int argc, char **argv)
{
    int turn = 0, value = -1;
    start(&argc, &argv);
    while (turn < ROUNDS)
        if (rank == 0)
            UNROLLED(at(turn, turn % 2 * DELAY); MPI_Send(&turn, 1, MPI_INT, 1, 0, WORLD)); /* MARK send */
        else
            UNROLLED(at(turn, turn % 2 ? 0 : DELAY); /* MARK recv */
                     MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
                     MPI_Barrier(MPI_COMM_SELF));
    REQUIRE(rank == 0 || value == ROUNDS - 1);
    finish(ROUNDS, value);
}
