/* The receiver asks for the second message first, while the first one lies there.
 *
 * RUN np=2
 * EXPECT late_sender_wrong_order_same_source at=@second ranks=1 severity=0.300 instances=5 operation=MPI_Recv
 *   cause_rank=0 cause_line=@send_second
 * METRIC late_sender_wrong_order_same_source 0.300
 * SILENT late_sender
 * SILENT late_sender_wrong_order_other_source
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int first = 2 * round, second = 3 * round;
        if (rank == 0) {
            at(round, 0);
            MPI_Send(&first, 1, MPI_INT, 1, 1, WORLD);
            at(round, DELAY + 10);
            MPI_Send(&second, 1, MPI_INT, 1, 2, WORLD); /* MARK send_second */
        } else {
            int got_first = -1, got_second = -1;
            at(round, 10);
            MPI_Recv(&got_second, 1, MPI_INT, 0, 2, WORLD, MPI_STATUS_IGNORE); /* MARK second */
            MPI_Recv(&got_first, 1, MPI_INT, 0, 1, WORLD, MPI_STATUS_IGNORE);
            REQUIRE(got_first == first && got_second == second);
            sum += got_first - got_second;
        }
    }
    finish(REPEATS, sum);
}
