/* Test and Iprobe loops are the program's own waiting; a Test never waits for anybody.
 *
 * RUN np=2
 * SILENT late_sender
 * SILENT late_receiver
 */
#include "common.h"

/* One message for each kind of polling. */
static long poll(int round)
{
    int value[2] = {-1, -1}, flag = 0, index, count, indices[2];
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[2];
    if (round < 4)
        MPI_Irecv(&value[0], 1, MPI_INT, 0, 0, WORLD, &requests[0]);
    while (!flag) {
        usleep(200);
        switch (round) {
        case 0: MPI_Test(&requests[0], &flag, &statuses[0]); break;
        case 1: MPI_Testall(2, requests, &flag, statuses); break;
        case 2: MPI_Testany(2, requests, &index, &flag, &statuses[0]); break;
        case 3:
            MPI_Testsome(2, requests, &count, indices, statuses);
            flag = count == 1;
            break;
        default: MPI_Iprobe(0, 0, WORLD, &flag, &statuses[0]);
        }
    }
    if (round == 4)
        MPI_Recv(&value[0], 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
    REQUIRE(value[0] == round && requests[0] == MPI_REQUEST_NULL);
    return value[0];
}

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        if (rank == 0) {
            at(round, DELAY);
            MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD);
        } else {
            at(round, 0);
            sum += poll(round);
        }
    }
    finish(REPEATS, sum);
}
