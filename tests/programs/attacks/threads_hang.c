/* Threads of rank 0 wait for each other until a timer ends all (`circle`, and by read-write locks `shared`), one
 * waits for a mutex that it has (`itself`; for an hour at most: `limit`), or takes one again that lets it (`again`),
 * one waits for a mutex of another that goes on (`held`), or that waits for its end (`joined`), or for more work when
 * the program ends (`ends`). */
#include "../common.h"
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

static pthread_mutex_t mutexes[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static sem_t work;
static pthread_rwlock_t shared[2] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
static int is_limited, is_shared;

static NOINLINE void take_second(int which)
{
    pthread_mutex_lock(&mutexes[!which]); /* never */
}

static void *take_both(void *which)
{
    int first = which != NULL;
    if (is_shared) {
        pthread_rwlock_wrlock(&shared[first]);
        usleep(50000);
        pthread_rwlock_rdlock(&shared[!first]); /* to read */
    }
    pthread_mutex_lock(&mutexes[first]);
    usleep(50000);
    take_second(first);
    return NULL;
}

static void *take_one(void *unused)
{
    take_second(1);
    return unused;
}

static void *take_again(void *kind)
{
    static pthread_mutex_t again = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    pthread_mutex_t *mutex = kind ? &again : &mutexes[0];
    pthread_mutex_lock(mutex);
    if (is_limited)
        pthread_mutex_timedlock(mutex, &(struct timespec){time(NULL) + 3600}); /* limit */
    pthread_mutex_lock(mutex); /* itself */
    pause();
    return NULL;
}

static void *serve(void *unused)
{
    for (;;) {
        sem_wait(&work);
        pass_ms(1);
    }
    return unused;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    start_clock();
    pthread_t threads[2];
    if (strcmp(argv[1], "ends") != 0) {
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
        struct itimerspec time = {.it_value = {1, 0}};
        timer_t timer;
        REQUIRE(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
        timer_settime(timer, 0, &time, NULL);
        is_limited = strcmp(argv[1], "limit") == 0;
        is_shared = strcmp(argv[1], "shared") == 0;
        if (rank == 0 && (strcmp(argv[1], "held") == 0 || strcmp(argv[1], "joined") == 0)) {
            pthread_mutex_lock(&mutexes[0]);
            pthread_create(&threads[0], NULL, take_one, NULL);
            if (argv[1][0] == 'j')
                pthread_join(threads[0], NULL); /* joined */
            for (;;)
                pause();
        } else if (rank == 0 && (is_limited || strcmp(argv[1], "itself") == 0 || strcmp(argv[1], "again") == 0)) {
            pthread_create(&threads[0], NULL, take_again, argv[1][0] == 'a' ? threads : NULL);
            pthread_join(threads[0], NULL);
        } else if (rank == 0) {
            for (int own = 0; own < 2; own++)
                pthread_create(&threads[own], NULL, take_both, own ? threads : NULL);
            for (int own = 0; own < 2; own++)
                pthread_join(threads[own], NULL);
        }
    } else if (rank == 0) {
        pthread_create(&threads[0], NULL, serve, NULL);
        for (int round = 0; round < 5; round++) {
            pass_ms(20);
            sem_post(&work);
        }
        pass_ms(20);
    }
    MPI_Barrier(WORLD);
    MPI_Finalize();
}
