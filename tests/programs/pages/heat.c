/* Something of everything that a page of a report shows: a ring in which rank 2 computes 60 ms
 * and the others 20 ms, so that rank 3 waits for its message; a sum for which all wait for rank 2;
 * what rank 0 reads and broadcasts late; regions, and a message that nobody receives.
 */
#include "../common.h"
#include "laggard.h"

NOINLINE static void solve(int round)
{
    laggard_region_begin("solve");
    at(round, rank == 2 ? 60 : 20);
    laggard_region_end("solve");
}

NOINLINE static int exchange(int round)
{
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, value = -1;
    MPI_Request request;
    MPI_Isend(&round, 1, MPI_INT, next, 0, WORLD, &request); /* MARK send */
    MPI_Recv(&value, 1, MPI_INT, previous, 0, WORLD, MPI_STATUS_IGNORE); /* MARK receive */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return value;
}

NOINLINE static int residual(int value)
{
    int sum = 0;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, WORLD); /* MARK sum */
    return sum;
}

NOINLINE static int read_input(int round)
{
    int value = round;
    at(round, rank == 0 ? 95 : 75);
    MPI_Bcast(&value, 1, MPI_INT, 0, WORLD); /* MARK input */
    return value;
}

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    if (rank == 1)
        MPI_Send(&rank, 1, MPI_INT, 0, 77, WORLD);
    for (int round = 0; round < REPEATS; round++) {
        solve(round);
        sum += residual(exchange(round));
        sum += read_input(round);
    }
    finish(REPEATS + 1, sum);
    return 0;
}
