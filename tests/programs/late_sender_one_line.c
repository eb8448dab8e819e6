/* A line that the compiler made several calls of, as it does where it unrolls a loop, is one
 * place: of the sends, and of the receives.
 *
 * RUN np=2
 * EXPECT late_sender at=@recv ranks=1 severity=0.360 instances=6 cause_rank=0 cause_line=@send
 * METRIC late_sender 0.360
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
            UNROLLED(at(turn, DELAY); MPI_Send(&turn, 1, MPI_INT, 1, 0, WORLD)); /* MARK send */
        else
            UNROLLED(at(turn, 0); MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE)); /* MARK recv */
    REQUIRE(rank == 0 || value == ROUNDS - 1);
    finish(ROUNDS, value);
}
