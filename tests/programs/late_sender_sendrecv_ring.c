/* A ring shift: only the right neighbour of the late rank waits for it.
 *
 * RUN np=4
 * EXPECT late_sender at=@shift ranks=3 severity=0.300 operation=MPI_Sendrecv
 *   cause_rank=2 cause_line=@shift cause_operation=MPI_Sendrecv
 * EXPECT late_sender at=@replace ranks=0 severity=0.300 operation=MPI_Sendrecv_replace
 *   cause_rank=3 cause_line=@replace
 * METRIC late_sender 0.600
 * SILENT late_receiver
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int round = 0; round < REPEATS; round++) {
        int out = 10 * round + rank, in = -1;
        at(round, rank == 2 ? DELAY : 0);
        MPI_Sendrecv(&out, 1, MPI_INT, right, 1, &in, 1, MPI_INT, left, 1, WORLD, MPI_STATUS_IGNORE); /* MARK shift */
        REQUIRE(in == 10 * round + left);
        sum += in;
    }
    for (int round = REPEATS; round < 2 * REPEATS; round++) {
        int value = 10 * round + rank;
        at(round, rank == 3 ? DELAY : 0);
        MPI_Sendrecv_replace(&value, 1, MPI_INT, right, 2, left, 2, WORLD, MPI_STATUS_IGNORE); /* MARK replace */
        REQUIRE(value == 10 * round + left);
        sum += value;
    }
    finish(2 * REPEATS, sum);
}
