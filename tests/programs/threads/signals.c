/* The first thread of rank 0 waits for a condition, a semaphore and a barrier, for which a second thread
 * comes late each time: DELAY, DELAY / 2 and DELAY / 3 ms. A wait that times out is for nobody.
 *
 * Built with -pthread, run with two ranks.
 */
#include "../common.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

enum { BEGIN = 5 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static pthread_barrier_t barrier;
static int ready;
static long sum;

static void times_out(void)
{
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 2000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&mutex);
    REQUIRE(pthread_cond_timedwait(&never, &mutex, &until) == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
}

static void *comes_late(void *unused)
{
    for (int round = 0; round < REPEATS; round++) {
        at(3 * round, BEGIN + DELAY);
        pthread_mutex_lock(&mutex);
        ready = round + 1;
        pthread_cond_signal(&condition); /* MARK signal */
        pthread_mutex_unlock(&mutex);
        at(3 * round + 1, BEGIN + DELAY / 2);
        sem_post(&semaphore); /* MARK post */
        at(3 * round + 2, BEGIN + DELAY / 3);
        pthread_barrier_wait(&barrier); /* MARK meet */
    }
    return unused;
}

static void waits(int round)
{
    at(3 * round, BEGIN);
    pthread_mutex_lock(&mutex);
    while (ready <= round)
        pthread_cond_wait(&condition, &mutex); /* MARK wait */
    sum += ready;
    pthread_mutex_unlock(&mutex);
    at(3 * round + 1, BEGIN);
    while (sem_wait(&semaphore) != 0)
        REQUIRE(errno == EINTR);
    at(3 * round + 2, BEGIN);
    pthread_barrier_wait(&barrier);
    times_out();
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    sem_init(&semaphore, 0, 0);
    pthread_barrier_init(&barrier, NULL, 2);
    if (rank == 0)
        pthread_create(&thread, NULL, comes_late, NULL);
    for (int round = 0; rank == 0 && round < REPEATS; round++)
        waits(round);
    if (rank == 0)
        pthread_join(thread, NULL);
    finish(3 * REPEATS, sum);
}
