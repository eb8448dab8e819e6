/* Two root causes of waits in a communicator and its duplicate: rank 0 is 40 ms late for the one, and then rank 1 takes 20 ms
 * for the other one. Each is compared from where the two met last, on whichever communicator. Rank 2 takes part in neither.
 *
 * RUN np=3
 * ROOT computation at=@first ranks=0:0.200
 * ROOT computation at=@second ranks=1:0.100
 * METRIC wait_at_barrier 0.200
 * METRIC wait_at_nxn 0.100
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    MPI_Comm two, again;
    start(&argc, &argv);
    MPI_Comm_split(WORLD, rank < 2, rank, &two);
    MPI_Comm_dup(two, &again);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
        int value = round;
        if (rank < 2) {
            at(round, rank == 0 ? 40 : 0);
            MPI_Barrier(two); /* MARK first */
            at(round, rank == 1 ? 60 : 40);
            MPI_Allreduce(&round, &value, 1, MPI_INT, MPI_MAX, again); /* MARK second */
        }
        REQUIRE(value == round);
        sum += value;
    }
    at(REPEATS, 0);
    MPI_Comm_free(&again);
    MPI_Comm_free(&two);
    finish(REPEATS, sum);
}
