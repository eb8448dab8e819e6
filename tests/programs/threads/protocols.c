/* Mutexes of all kinds: a thread holds each of them for DELAY ms while another one wants it. What calls return, and errno,
 * is the same as ever.
 *
 * Built with -pthread, run as one rank.
 */
#include "../common.h"
#include <errno.h>
#include <pthread.h>

enum { OF_TYPE, INHERIT, PROTECT, ROBUST, KINDS };
static const char *NAMES[] = {"type", "inherit", "protect", "robust"};
static const int TYPES[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                            PTHREAD_MUTEX_ADAPTIVE_NP};
enum { ALL = KINDS * sizeof TYPES / sizeof *TYPES };

static pthread_mutex_t mutexes[ALL];
static pthread_barrier_t both;

/* The result of a call that must leave errno alone. */
#define RESULT(call) (errno = 77, result = (call), errno == 77 ? result : -1)

/* A thread without rights is refused its first ceiling, and has it from then on. */
static void take(pthread_mutex_t *mutex)
{
    if (pthread_mutex_lock(mutex) != 0)
        REQUIRE(pthread_mutex_lock(mutex) == 0);
    REQUIRE(pthread_mutex_unlock(mutex) == 0);
}

static void make(int at)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, TYPES[at / KINDS]);
    if (at % KINDS == INHERIT)
        pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
    if (at % KINDS == PROTECT) {
        pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_PROTECT);
        pthread_mutexattr_setprioceiling(&kind, 1);
    }
    if (at % KINDS == ROBUST)
        pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    REQUIRE(pthread_mutex_init(&mutexes[at], &kind) == 0);
    pthread_mutexattr_destroy(&kind);
    take(&mutexes[at]);
}

/* Results of calls by a thread that does not hold a mutex of each kind, which another one does. */
static void try(int at)
{
    int result;
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    int busy = RESULT(pthread_mutex_trylock(&mutexes[at]));
    int late = RESULT(pthread_mutex_timedlock(&mutexes[at], &soon));
    printf("%s %d: %d %d\n", NAMES[at % KINDS], at / KINDS, busy, late);
}

static void *hold(void *unused)
{
    for (int at = 0; at < ALL; at++) {
        int result;
        take(&mutexes[at]);
        REQUIRE(RESULT(pthread_mutex_lock(&mutexes[at])) == 0);
        pthread_barrier_wait(&both);
        pass_ms(DELAY);
        REQUIRE(RESULT(pthread_mutex_unlock(&mutexes[at])) == 0); /* MARK unlock */
    }
    return unused;
}

static void *end_holding(void *mutex)
{
    pthread_mutex_lock(mutex);
    return NULL;
}

/* The holder ends: who comes next is told, and mends it or not. */
static void outlive(pthread_mutex_t *mutex)
{
    int result;
    pthread_t thread;
    pthread_create(&thread, NULL, end_holding, mutex);
    pthread_join(thread, NULL);
    int lock = RESULT(pthread_mutex_lock(mutex)), mend = pthread_mutex_consistent(mutex);
    int unlock = pthread_mutex_unlock(mutex);
    printf("outlived: %d %d %d\n", lock, mend, unlock);
    pthread_create(&thread, NULL, end_holding, mutex);
    pthread_join(thread, NULL);
    lock = pthread_mutex_lock(mutex), unlock = pthread_mutex_unlock(mutex);
    printf("not mended: %d %d", lock, unlock);
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    // Nobody can ever have it, however often it is wanted, and by whom.
    for (int n = 0; n < 3; n++)
        printf(" %d %d", pthread_mutex_lock(mutex), pthread_mutex_timedlock(mutex, &soon));
    pthread_create(&thread, NULL, end_holding, mutex);
    pthread_join(thread, NULL);
    printf("\n");
}

int main(int argc, char **argv)
{
    int provided, result;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    pthread_t holder;
    pthread_barrier_init(&both, NULL, 2);
    for (int at = 0; at < ALL; at++) {
        make(at);
    }
    pthread_create(&holder, NULL, hold, NULL);
    for (int at = 0; at < ALL; at++) {
        pthread_barrier_wait(&both);
        try(at);
        REQUIRE(RESULT(pthread_mutex_lock(&mutexes[at])) == 0); /* MARK lock */
        if (TYPES[at / KINDS] == PTHREAD_MUTEX_ERRORCHECK)
            printf("again: %d\n", RESULT(pthread_mutex_lock(&mutexes[at])));
        REQUIRE(pthread_mutex_unlock(&mutexes[at]) == 0);
    }
    pthread_join(holder, NULL);
    for (int at = ROBUST; at < ALL; at += KINDS)
        outlive(&mutexes[at]);
    finish(1, ALL);
}
