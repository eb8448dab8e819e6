/* Thread 1 keeps a lock for DELAY ms, and the first thread wants it: a lock of OpenMP, a nest lock that
 * thread 1 takes and gives back twice, a read-write lock to read and to write, and a spin lock. Two readers
 * do not wait for each other, nor does who takes a nest lock that it has.
 *
 * Built with -fopenmp, run with two threads of one rank.
 */
#include "../common.h"
#include <omp.h>
#include <pthread.h>

enum { TAKES = 10, WANTS = 20 };
enum { OPENMP, NEST, TO_READ, TO_WRITE, SPIN, BOTH_READ, OWN_NEST, KINDS };
static omp_lock_t lock;
static omp_nest_lock_t nest, own_nest[2];
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static long sums[2];
/* Where code stands at fixed places, this is the address of a stub in the program. */
static void *(*volatile allocate)(size_t) = malloc;

static NOINLINE void take_own(omp_nest_lock_t *own)
{
    for (int n = 0; n < 3; n++)
        omp_set_nest_lock(own);
}

static NOINLINE void give_own_back(omp_nest_lock_t *own)
{
    for (int n = 0; n < 3; n++)
        omp_unset_nest_lock(own);
}

static NOINLINE void take(int kind)
{
    switch (kind) {
    case OPENMP: omp_set_lock(&lock); break;
    case NEST:
        omp_set_nest_lock(&nest);
        omp_set_nest_lock(&nest);
        break;
    case OWN_NEST: take_own(&own_nest[1]); break;
    case TO_READ: pthread_rwlock_wrlock(&shared); break;
    case SPIN: pthread_spin_lock(&spin); break;
    default: pthread_rwlock_rdlock(&shared);
    }
}

static NOINLINE void want(int kind)
{
    switch (kind) {
    case OPENMP: omp_set_lock(&lock); break; /* MARK lock */
    case NEST: omp_set_nest_lock(&nest); break; /* MARK nest */
    case OWN_NEST: take_own(&own_nest[0]); break;
    case TO_WRITE: pthread_rwlock_wrlock(&shared); break; /* MARK write */
    case SPIN: pthread_spin_lock(&spin); break; /* MARK spin */
    default: pthread_rwlock_rdlock(&shared); /* MARK read */
    }
}

static NOINLINE void give_back(int kind, int own)
{
    switch (kind) {
    case OPENMP: omp_unset_lock(&lock); break; /* MARK unlock */
    case NEST: omp_unset_nest_lock(&nest); break; /* MARK unnest */
    case OWN_NEST: give_own_back(&own_nest[own]); break;
    case SPIN: pthread_spin_unlock(&spin); break; /* MARK unspin */
    default: pthread_rwlock_unlock(&shared); /* MARK unshare */
    }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(omp_get_max_threads() == 2 && allocate != NULL);
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
    omp_init_nest_lock(&own_nest[0]);
    omp_init_nest_lock(&own_nest[1]);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
#pragma omp parallel
    {
        int own = omp_get_thread_num();
        for (int round = 0; round < KINDS * REPEATS; round++) {
            at(round, own ? TAKES : WANTS);
            own ? take(round % KINDS) : want(round % KINDS);
            if (own && round % KINDS == NEST) {
                at(round, WANTS + DELAY / 2);
                omp_unset_nest_lock(&nest);
            }
            if (own)
                at(round, WANTS + DELAY);
            sums[own] += round;
            give_back(round % KINDS, own);
        }
    }
    finish(KINDS * REPEATS, sums[0] + sums[1]);
}
