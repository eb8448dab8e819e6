/* Four threads want a mutex, one a millisecond after the other, and each holds it for STAY ms. Each waits for all that
 * came before it. A second mutex is taken by one thread alone: nobody waits.
 *
 * Built with -pthread, run with one rank.
 */
#include "../common.h"
#include <pthread.h>

enum { BEGIN = 10, STAY = 20, THREADS = 4 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t quiet = PTHREAD_MUTEX_INITIALIZER;
static long sum;

static NOINLINE void hold(void)
{
    pthread_mutex_lock(&mutex); /* MARK lock */
    pass_ms(STAY);
    sum++;
    pthread_mutex_unlock(&mutex); /* MARK unlock */
}

static void *works(void *number)
{
    for (int round = 0; round < REPEATS; round++) {
        at(round, BEGIN + (int)(long)number);
        hold();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    for (long n = 1; n < THREADS; n++)
        REQUIRE(pthread_create(&threads[n], NULL, works, (void *)n) == 0);
    for (int round = 0; round < REPEATS; round++) {
        at(round, BEGIN);
        hold();
        pthread_mutex_lock(&quiet);
        sum += round;
        pthread_mutex_unlock(&quiet);
    }
    at(REPEATS, 0);
    for (int n = 1; n < THREADS; n++)
        pthread_join(threads[n], NULL);
    finish(REPEATS, sum);
}
