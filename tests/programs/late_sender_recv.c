/* A blocking receive waits for a sender that computes first.
 *
 * RUN np=2
 * EXPECT late_sender at=@recv ranks=1 severity=0.300 instances=5 operation=MPI_Recv function=consume
 *   cause_rank=0 cause_line=@send cause_operation=MPI_Send because="comput"
 * METRIC late_sender 0.300
 * SILENT late_receiver
 * SILENT wait_at_finalize
 */
#include "common.h"

static NOINLINE void produce(int round)
{
    at(round, DELAY);
    MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD); /* MARK send */
}

static NOINLINE long consume(int round)
{
    int value = -1;
    at(round, 0);
    MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK recv */
    REQUIRE(value == round);
    return value;
}

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        if (rank == 0)
            produce(round);
        else
            sum += consume(round);
    }
    finish(REPEATS, sum);
}
