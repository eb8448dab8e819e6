/* Three threads of a rank meet at a barrier for all. Thread 1 is late for the first thread at a barrier for
 * these two, so thread 2 waits for both at the next barrier for all. At the last one, thread 2 is late: what
 * was before is settled by then.
 *
 * Built with -pthread, run with one rank.
 */
#include "../common.h"
#include <pthread.h>

enum { BEGIN = 10, LATE = BEGIN + DELAY, LATER = LATE + 20 };
static pthread_barrier_t all, two;
static long sum;

static void *first(void *unused)
{
    for (int round = 0; round < REPEATS; round++) {
        at(round, BEGIN);
        pthread_barrier_wait(&all);
        at(round, LATE);
        pthread_barrier_wait(&two); /* MARK late */
        pthread_barrier_wait(&all);
        sum += round;
        pthread_barrier_wait(&all);
    }
    return unused;
}

static void *second(void *unused)
{
    for (int round = 0; round < REPEATS; round++) {
        at(round, BEGIN);
        pthread_barrier_wait(&all);
        pthread_barrier_wait(&all);
        at(round, LATER);
        pthread_barrier_wait(&all); /* MARK later */
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(provided >= MPI_THREAD_FUNNELED);
    REQUIRE(pthread_barrier_init(&all, NULL, 3) == 0 && pthread_barrier_init(&two, NULL, 2) == 0);
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    for (int round = 0; round < REPEATS; round++) {
        at(round, BEGIN);
        pthread_barrier_wait(&all);
        pthread_barrier_wait(&two);
        pthread_barrier_wait(&all);
        pthread_barrier_wait(&all);
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    finish(REPEATS, sum);
}
