/* Two threads of each rank exchange messages with their own tags; one pair is late.
 *
 * RUN np=2 cflags="-pthread"
 * LOCATIONS 4
 * EXPECT late_sender at=@recv ranks=1 severity=0.300 instances=5 cause_rank=0 cause_line=@send
 *   function=late_receiving
 * METRIC late_sender 0.300
 * SILENT late_receiver
 */
#include "common.h"
#include <pthread.h>

enum { ON_TIME = 1, LATE = 2 };
static long late_sum;

static NOINLINE void late_sending(int round)
{
    at(round, DELAY + 20);
    MPI_Send(&round, 1, MPI_INT, 1, LATE, WORLD); /* MARK send */
}

static NOINLINE void late_receiving(int round)
{
    int value = -1;
    at(round, 20);
    MPI_Recv(&value, 1, MPI_INT, 0, LATE, WORLD, MPI_STATUS_IGNORE); /* MARK recv */
    REQUIRE(value == round);
    late_sum += value;
}

static void *late_pair(void *unused)
{
    for (int round = 0; round < REPEATS; round++) {
        if (rank == 0)
            late_sending(round);
        else
            late_receiving(round);
    }
    return unused;
}

int main(int argc, char **argv)
{
    long sum = 0;
    int provided;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    start_clock();
    REQUIRE(provided == MPI_THREAD_MULTIPLE);
    pthread_create(&thread, NULL, late_pair, NULL);
    for (int round = 0; round < REPEATS; round++) {
        int value = -1;
        if (rank == 0) {
            at(round, 5);
            MPI_Send(&round, 1, MPI_INT, 1, ON_TIME, WORLD);
        } else {
            at(round, 10);
            MPI_Recv(&value, 1, MPI_INT, 0, ON_TIME, WORLD, MPI_STATUS_IGNORE);
            REQUIRE(value == round);
        }
        sum += value;
    }
    pthread_join(thread, NULL);
    finish(REPEATS, sum + 100 * late_sum);
}
