/* Thread 1 keeps a lock for DELAY ms, and the first thread wants it: a lock of OpenMP, a read-write lock to
 * read and to write, and a spin lock. Two readers do not wait for each other.
 *
 * Built with -fopenmp, run with two threads of one rank.
 */
#include "../common.h"
#include <omp.h>
#include <pthread.h>

enum { TAKES = 10, WANTS = 20 };
enum { OPENMP, TO_READ, TO_WRITE, SPIN, BOTH_READ, KINDS };
static omp_lock_t lock;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static long sums[2];

static NOINLINE void take(int kind)
{
    switch (kind) {
    case OPENMP: omp_set_lock(&lock); break;
    case TO_READ: pthread_rwlock_wrlock(&shared); break;
    case SPIN: pthread_spin_lock(&spin); break;
    default: pthread_rwlock_rdlock(&shared);
    }
}

static NOINLINE void want(int kind)
{
    switch (kind) {
    case OPENMP: omp_set_lock(&lock); break; /* MARK lock */
    case TO_WRITE: pthread_rwlock_wrlock(&shared); break;
    case SPIN: pthread_spin_lock(&spin); break;
    default: pthread_rwlock_rdlock(&shared);
    }
}

static NOINLINE void give_back(int kind)
{
    switch (kind) {
    case OPENMP: omp_unset_lock(&lock); break; /* MARK unlock */
    case SPIN: pthread_spin_unlock(&spin); break;
    default: pthread_rwlock_unlock(&shared);
    }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(omp_get_max_threads() == 2);
    omp_init_lock(&lock);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
#pragma omp parallel
    {
        int own = omp_get_thread_num();
        for (int round = 0; round < KINDS * REPEATS; round++) {
            at(round, own ? TAKES : WANTS);
            own ? take(round % KINDS) : want(round % KINDS);
            if (own)
                at(round, WANTS + DELAY);
            sums[own] += round;
            give_back(round % KINDS);
        }
    }
    finish(KINDS * REPEATS, sums[0] + sums[1]);
}
