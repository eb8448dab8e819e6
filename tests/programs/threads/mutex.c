/* Thread 1 of rank 0 keeps a mutex for DELAY ms in each round, and the first thread wants it. So rank 1
 * waits in a barrier. A second mutex is taken often, and never held by two: it stays silent.
 *
 * Built with -pthread, run with two ranks.
 */
#include "../common.h"
#include <pthread.h>

enum { TAKES = 10, WANTS = 20, OFTEN = 1000 };
static pthread_mutex_t wanted = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t quiet = PTHREAD_MUTEX_INITIALIZER;
static long sum;

static NOINLINE void keep(int round)
{
    at(round, TAKES);
    pthread_mutex_lock(&wanted);
    at(round, WANTS + DELAY);
    sum += round;
    pthread_mutex_unlock(&wanted); /* MARK unlock */
}

static void *other(void *unused)
{
    for (int round = 0; round < REPEATS; round++)
        keep(round);
    return unused;
}

static NOINLINE void want(int round)
{
    at(round, WANTS);
    pthread_mutex_lock(&wanted); /* MARK lock */
    sum += round;
    pthread_mutex_unlock(&wanted);
    for (int n = 0; n < OFTEN; n++) {
        pthread_mutex_lock(&quiet);
        sum += n;
        pthread_mutex_unlock(&quiet);
    }
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(provided >= MPI_THREAD_FUNNELED);
    if (rank == 0)
        pthread_create(&thread, NULL, other, NULL);
    for (int round = 0; round < REPEATS; round++) {
        want(round);
        MPI_Barrier(WORLD); /* MARK barrier */
    }
    if (rank == 0)
        pthread_join(thread, NULL);
    finish(REPEATS, sum);
}
