/* Three waits of 60 ms each: before the pause, in it, and after it. Only the first and the last
 * are seen, and the messages of the pause are not missed. */
#include "../common.h"

static NOINLINE int wait_for_message(int round)
{
    int value = -1;
    MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK recv */
    REQUIRE(value == round);
    return value;
}

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 3; round++) {
        at(round, 0);
        MPI_Pcontrol(round != 1);
        if (rank == 0) {
            at(round, DELAY);
            MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD);
        } else {
            sum += wait_for_message(round);
        }
    }
    MPI_Pcontrol(1);
    finish(3, sum);
}
