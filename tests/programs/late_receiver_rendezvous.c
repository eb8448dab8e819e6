/* A standard send of a large message cannot finish before the receive is posted.
 *
 * RUN np=2
 * EXPECT late_receiver at=@send ranks=0 severity=0.300 instances=5 operation=MPI_Send
 *   cause_rank=1 cause_line=@recv
 * METRIC late_receiver 0.300
 * SILENT late_sender
 */
#include "common.h"

enum { COUNT = 1 << 18 };
static int data[COUNT];

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        if (rank == 0) {
            data[0] = data[COUNT - 1] = round;
            at(round, 0);
            MPI_Send(data, COUNT, MPI_INT, 1, 0, WORLD); /* MARK send */
        } else {
            at(round, DELAY);
            MPI_Recv(data, COUNT, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK recv */
            REQUIRE(data[0] == round && data[COUNT - 1] == round);
            sum += data[0];
        }
    }
    finish(REPEATS, sum);
}
