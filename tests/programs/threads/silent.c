/* Two threads use all that threads may wait in, and nobody waits: who is waited for has come before, or comes at the
 * same moment. Regions follow each other at once, and loops are shared evenly.
 *
 * Built with -fopenmp -pthread, run with two threads of one rank.
 */
#include "../common.h"
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static omp_lock_t lock;
static int ready;
static long sum;

/* Each thread has moments of its own, the second one's after the first one's. */
static void in_turn(int round, int ms) { at(round, ms + 3 * omp_get_thread_num()); }

static NOINLINE void locks(int round)
{
    in_turn(round, 5);
    pthread_mutex_lock(&mutex);
    sum++;
    pthread_mutex_unlock(&mutex);
    pthread_rwlock_wrlock(&readers);
    sum++;
    pthread_rwlock_unlock(&readers);
    omp_set_lock(&lock);
    sum++;
    omp_unset_lock(&lock);
#pragma omp critical
    sum++;
}

static NOINLINE void signals(int round)
{
    in_turn(round, 15);
    pthread_mutex_lock(&mutex);
    if (omp_get_thread_num() == 0) {
        ready = round + 1;
        pthread_cond_signal(&condition);
        sem_post(&semaphore);
    }
    while (ready <= round)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    if (omp_get_thread_num() == 1)
        sem_wait(&semaphore);
}

static NOINLINE void barriers(int round)
{
    at(round, 30);
    pthread_barrier_wait(&barrier);
    at(round, 35);
#pragma omp barrier
}

static NOINLINE void loops(int round)
{
#pragma omp for schedule(static) reduction(+ : sum)
    for (int n = 0; n < 4; n++) {
        at(round, 40 + 5 * (n % 2));
        sum += n;
    }
#pragma omp for ordered schedule(static, 1) nowait
    for (int n = 0; n < 4; n++) {
        at(round, 50 + 3 * n);
#pragma omp ordered
        sum += n;
    }
    at(round, 65);
}

/* Who waits for tasks executes them. */
static NOINLINE void tasks(int round)
{
    if (omp_get_thread_num() == 0) {
#pragma omp task firstprivate(round)
        at(round, 70);
#pragma omp taskwait
    }
    at(round, 75);
}

static void *ends(void *unused) { return unused; }

/* The thread has ended before somebody waits for that. */
static NOINLINE void join(int round)
{
    pthread_t thread;
    at(round, 80);
    if (omp_get_thread_num() == 0) {
        REQUIRE(pthread_create(&thread, NULL, ends, NULL) == 0);
        at(round, 85);
        pthread_join(thread, NULL);
    }
    at(round + 1, 0);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    REQUIRE(omp_get_max_threads() == 2);
    pthread_barrier_init(&barrier, NULL, 2);
    sem_init(&semaphore, 0, 0);
    omp_init_lock(&lock);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
#pragma omp parallel
        {
            locks(round);
            signals(round);
            barriers(round);
            loops(round);
        }
#pragma omp parallel
        {
            tasks(round);
            join(round);
        }
    }
    finish(REPEATS, sum);
}
