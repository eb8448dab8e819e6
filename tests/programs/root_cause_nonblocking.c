/* Two root causes, and a non-blocking collective between them. Ranks 0 and 1 look until rank 2 has
 * come to it, too. Then all have met: that they waited there does not explain why rank 0 is late for
 * its message, nor that rank 2 waits for rank 1, which waits for rank 0.
 *
 * RUN np=3
 * ROOT computation at=@start ranks=2:0.360
 * ROOT computation at=@first ranks=0:0.360
 * NO_ROOT ranks=1
 * METRIC wait_at_nxn_polled 0.360
 * METRIC late_sender 0.360
 */
#include "common.h"

enum { ROUNDS = 3 };

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++) {
        int all = -1, flag = 0;
        MPI_Request request;
        at(round, rank == 2 ? DELAY : 0);
        MPI_Iallreduce(&round, &all, 1, MPI_INT, MPI_SUM, WORLD, &request); /* MARK start */
        for (;;) {
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            if (flag)
                break;
            pass_ms(0.2);
        }
        REQUIRE(all == 3 * round);
        sum += all;
    }
    for (int round = ROUNDS; round < 2 * ROUNDS; round++) {
        int value = round;
        at(round, rank == 0 ? DELAY : 0);
        if (rank == 0) {
            MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD); /* MARK first */
        } else {
            MPI_Recv(&value, 1, MPI_INT, rank - 1, 0, WORLD, MPI_STATUS_IGNORE);
            if (rank == 1)
                MPI_Send(&value, 1, MPI_INT, 2, 0, WORLD);
        }
        REQUIRE(value == round);
        sum += value;
    }
    finish(2 * ROUNDS, sum);
}
