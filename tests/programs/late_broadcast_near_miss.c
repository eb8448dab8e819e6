/* The root is on time, another member is late: nobody waits for the root.
 *
 * RUN np=4
 * SILENT late_broadcast
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 6; round++) {
        int data[4] = {round, round + 1, round + 2, round + 3}, out = -1;
        at(round, rank == 1 ? 0 : rank == 3 ? DELAY : 10);
        if (round % 2 == 0) {
            out = rank == 1 ? round : -1;
            MPI_Bcast(&out, 1, MPI_INT, 1, WORLD);
            REQUIRE(out == round);
        } else {
            MPI_Scatter(data, 1, MPI_INT, &out, 1, MPI_INT, 1, WORLD);
            REQUIRE(out == round + rank);
        }
        sum += out;
    }
    finish(6, sum);
}
