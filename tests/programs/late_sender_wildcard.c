/* Wildcard receives complete in another order than they were posted.
 *
 * Round kinds: two receives from any source with different tags, the second
 * completed first; and two receives of any source and any tag, which match in the
 * order of posting however they are completed. Where the order of the Waits makes
 * the second message the one waited for, the whole wait still is the late second
 * send's, whether it counts as a wrong order or not.
 *
 * RUN np=3
 * EXPECT late_sender at=@late_tag ranks=0 severity=0.180 instances=3 cause_rank=1 cause_line=@send_late_tag
 * SILENT late_sender+late_sender_wrong_order_same_source at=@early_tag
 * EXPECT late_sender+late_sender_wrong_order_same_source at=@second_posted ranks=0 severity=0.180
 *   instances=3 cause_rank=2 cause_line=@send_second
 * SILENT late_sender+late_sender_wrong_order_same_source at=@first_posted
 * METRIC late_sender+late_sender_wrong_order_same_source+late_sender_wrong_order_other_source 0.360
 */
#include "common.h"

enum { ROUNDS = 6 };

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++) {
        int values[2] = {-1, -1};
        if (rank == 0) {
            MPI_Request requests[2];
            MPI_Status statuses[2];
            at(round, 0);
            if (round % 2 == 0) {
                MPI_Irecv(&values[0], 1, MPI_INT, MPI_ANY_SOURCE, 1, WORLD, &requests[0]);
                MPI_Irecv(&values[1], 1, MPI_INT, MPI_ANY_SOURCE, 2, WORLD, &requests[1]);
                at(round, 10);
                MPI_Wait(&requests[1], &statuses[1]); /* MARK early_tag */
                MPI_Wait(&requests[0], &statuses[0]); /* MARK late_tag */
                REQUIRE(statuses[0].MPI_SOURCE == 1 && statuses[1].MPI_SOURCE == 1);
            } else {
                MPI_Irecv(&values[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &requests[0]);
                MPI_Irecv(&values[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &requests[1]);
                at(round, 10);
                MPI_Wait(&requests[1], &statuses[1]); /* MARK second_posted */
                MPI_Wait(&requests[0], &statuses[0]); /* MARK first_posted */
                REQUIRE(statuses[0].MPI_SOURCE == 2 && statuses[1].MPI_SOURCE == 2);
            }
            REQUIRE(values[0] == 100 + round && values[1] == 200 + round);
            /* What is sent now matches no receive of any source and any tag that was meant for others. */
            if (round % 2)
                let_go_on(1);
            sum += values[0] - values[1];
        } else if (rank == 1 && round % 2 == 0) {
            values[0] = 100 + round, values[1] = 200 + round;
            if (round > 0)
                go_on_after(0);
            at(round, 5);
            MPI_Send(&values[1], 1, MPI_INT, 0, 2, WORLD);
            at(round, 70);
            MPI_Send(&values[0], 1, MPI_INT, 0, 1, WORLD); /* MARK send_late_tag */
        } else if (rank == 2 && round % 2 == 1) {
            values[0] = 100 + round, values[1] = 200 + round;
            at(round, 5);
            MPI_Send(&values[0], 1, MPI_INT, 0, 9, WORLD);
            at(round, 70);
            MPI_Send(&values[1], 1, MPI_INT, 0, 9, WORLD); /* MARK send_second */
        }
    }
    if (rank == 1)
        go_on_after(0);
    finish(ROUNDS, sum);
}
