/* Threads wait for a semaphore each. Two of them are cancelled, one of which has called MPI, so nobody waits for what
 * another thread posts later. Only one is posted for somebody.
 *
 * Built with -pthread, run with one rank.
 */
#include "../common.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

enum { KNOWN, UNKNOWN, AWAITED, SEMAPHORES };
static sem_t semaphores[SEMAPHORES];

static void call(void)
{
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &flag, MPI_STATUS_IGNORE);
}

static void *wait_for(void *semaphore)
{
    if (semaphore == &semaphores[KNOWN])
        call();
    while (sem_wait(semaphore) != 0)
        REQUIRE(errno == EINTR);
    return NULL;
}

static void *post_all(void *unused)
{
    call();
    pass_ms(50);
    for (int of = 0; of < SEMAPHORES; of++)
        REQUIRE(sem_post(&semaphores[of]) == 0); /* MARK post */
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[SEMAPHORES], poster;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    start_clock();
    REQUIRE(provided == MPI_THREAD_MULTIPLE);
    for (int of = 0; of < SEMAPHORES; of++) {
        REQUIRE(sem_init(&semaphores[of], 0, 0) == 0);
        REQUIRE(pthread_create(&threads[of], NULL, wait_for, &semaphores[of]) == 0);
    }
    pass_ms(50);
    for (int of = KNOWN; of <= UNKNOWN; of++) {
        void *result;
        REQUIRE(pthread_cancel(threads[of]) == 0);
        REQUIRE(pthread_join(threads[of], &result) == 0 && result == PTHREAD_CANCELED);
    }
    REQUIRE(pthread_create(&poster, NULL, post_all, NULL) == 0);
    /* Meanwhile a location waits: this one, for the last thread. */
    REQUIRE(pthread_join(threads[AWAITED], NULL) == 0);
    REQUIRE(pthread_join(poster, NULL) == 0);
    finish(1, SEMAPHORES);
}
