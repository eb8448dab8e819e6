/* Rank 0 computes and writes a little now and then, which waits for no device: that is computation.
 *
 * RUN np=2
 * ROOT computation at=@send ranks=0:0.300
 * METRIC late_sender 0.300
 */
#include "common.h"
#include <fcntl.h>

/* Computes until `ms` milliseconds of the round are over, and writes once in a millisecond. */
static void compute_until(int fd, int round, double ms)
{
    double until = origin + 1e-3 * schedule_scale * (round * PERIOD + ms);
    for (double next = now(); next < until; next += 1e-3) {
        while (now() < next) {
        }
        REQUIRE(write(fd, "x", 1) == 1);
    }
    while (now() < until) {
    }
}

int main(int argc, char **argv)
{
    long sum = 0;
    int fd = open("/dev/null", O_WRONLY);
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int value = round;
        at(round, 0);
        if (rank == 0) {
            compute_until(fd, round, DELAY);
            MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD); /* MARK send */
        } else {
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
        }
        REQUIRE(value == round);
        sum += value;
    }
    close(fd);
    finish(REPEATS, sum);
}
