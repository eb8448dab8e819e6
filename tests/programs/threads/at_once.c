/* Two threads come to a lock at the same time, again and again; who does not get it waits for a millisecond. A lock of
 * each kind in turn.
 *
 * Built with -fopenmp, run with two threads of one rank.
 */
#include "../common.h"
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>

enum { CRITICAL, OPENMP, NEST, MUTEX, WRITE, SPIN, KINDS };
enum { TIMES = 50 };
static omp_lock_t lock;
static omp_nest_lock_t nest;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static atomic_int come;
static long sum;

static NOINLINE void stay(void)
{
    pass_ms(1);
    sum++;
}

static NOINLINE void once(int kind)
{
    switch (kind) {
    case CRITICAL:
#pragma omp critical
        stay();
        break;
    case OPENMP:
        omp_set_lock(&lock);
        stay();
        omp_unset_lock(&lock);
        break;
    case NEST:
        omp_set_nest_lock(&nest);
        stay();
        omp_unset_nest_lock(&nest);
        break;
    case MUTEX:
        pthread_mutex_lock(&mutex);
        stay();
        pthread_mutex_unlock(&mutex);
        break;
    case WRITE:
        pthread_rwlock_wrlock(&shared);
        stay();
        pthread_rwlock_unlock(&shared);
        break;
    default:
        pthread_spin_lock(&spin);
        stay();
        pthread_spin_unlock(&spin);
    }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(omp_get_max_threads() == 2);
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
#pragma omp parallel
    for (int n = 0; n < KINDS * TIMES; n++) {
        atomic_fetch_add(&come, 1);
        while (come < 2 * (n + 1)) {
        }
        once(n / TIMES);
    }
    REQUIRE(sum == 2 * KINDS * TIMES);
    result(sum);
    MPI_Finalize();
}
