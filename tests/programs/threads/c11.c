/* What C11 has for threads. In the first of three slots the first thread wants a mutex that the other one keeps for
 * DELAY ms; in the second one it waits for a condition, and in the third one for the end of the other thread.
 *
 * Built with -pthread, run with one rank.
 */
#include "../common.h"
#include <stdatomic.h>
#include <threads.h>

enum { BEGIN = 10, SLOTS = 3 };
static mtx_t mutex;
static cnd_t condition;
static atomic_int is_locked;
static int ready;

static int compute(void *of)
{
    int slot = *(int *)of;
    mtx_lock(&mutex);
    is_locked = 1;
    at(slot, BEGIN + DELAY);
    mtx_unlock(&mutex); /* MARK unlock */
    at(slot + 1, BEGIN + DELAY);
    mtx_lock(&mutex);
    ready = 1;
    cnd_signal(&condition); /* MARK signal */
    mtx_unlock(&mutex);
    at(slot + 2, BEGIN + DELAY);
    return 0;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    mtx_init(&mutex, mtx_plain);
    cnd_init(&condition);
    start_clock();
    for (int slot = 0; slot < REPEATS * SLOTS; slot += SLOTS) {
        thrd_t other;
        at(slot, 0);
        ready = is_locked = 0;
        thrd_create(&other, compute, &slot); /* MARK create */
        at(slot, BEGIN);
        while (!is_locked)
            thrd_yield();
        mtx_lock(&mutex); /* MARK lock */
        mtx_unlock(&mutex);
        at(slot + 1, BEGIN);
        mtx_lock(&mutex);
        while (!ready)
            cnd_wait(&condition, &mutex); /* MARK wait */
        mtx_unlock(&mutex);
        at(slot + 2, BEGIN);
        thrd_join(other, NULL); /* MARK join */
    }
    finish(REPEATS * SLOTS, 0);
}
