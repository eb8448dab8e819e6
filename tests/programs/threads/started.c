/* Rank 0 starts a thread in each round, which is late with a message for rank 1, and waits for its end. Before that it is
 * late by itself, so that both are behind the waiting.
 *
 * Built with -pthread, run with two ranks.
 */
#include "../common.h"
#include <pthread.h>

enum { ALONE = 20 };

static void *send_late(void *of)
{
    int round = *(int *)of;
    at(round, ALONE + DELAY);
    MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD); /* MARK send */
    return NULL;
}

int main(int argc, char **argv)
{
    long sum = 0;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    start_clock();
    REQUIRE(provided == MPI_THREAD_MULTIPLE);
    for (int round = 0; round < REPEATS; round++) {
        int got = round;
        if (rank == 0) {
            pthread_t thread;
            at(round, ALONE);
            REQUIRE(pthread_create(&thread, NULL, send_late, &round) == 0);
            REQUIRE(pthread_join(thread, NULL) == 0); /* MARK join */
        } else
            MPI_Recv(&got, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
        REQUIRE(got == round);
        sum += got;
    }
    finish(REPEATS, sum);
}
