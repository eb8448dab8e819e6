/* What programs with threads do as well: thousands that end at once, regions within regions, cancelled
 * threads, mutexes of all kinds and in shared memory, a child that forks, a mutex in a signal handler's
 * neighbourhood, MPI calls in tasks. Results must not change.
 *
 * Built with -fopenmp -pthread, run with two ranks.
 */
#include "../common.h"
#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <threads.h>

enum { MANY = 2000, AT_ONCE = 8 };
static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static long sum;

static void *add_one(void *unused)
{
    pthread_mutex_lock(&plain);
    sum++;
    pthread_mutex_unlock(&plain);
    return unused;
}

static void many_threads(void)
{
    pthread_t threads[AT_ONCE];
    for (int n = 0; n < MANY; n += AT_ONCE) {
        for (int t = 0; t < AT_ONCE; t++)
            REQUIRE(pthread_create(&threads[t], NULL, add_one, NULL) == 0);
        for (int t = 0; t < AT_ONCE; t++)
            REQUIRE(pthread_join(threads[t], NULL) == 0);
    }
    REQUIRE(sum == MANY);
}

static long nested(void)
{
    long count = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(3) reduction(+ : count)
    {
#pragma omp parallel num_threads(2) reduction(+ : count)
        {
            count += 1;
#pragma omp barrier
            count += 1;
        }
#pragma omp barrier
    }
    omp_set_max_active_levels(1);
    REQUIRE(count == 12);
    return count;
}

static long worksharing(void)
{
    long count = 0;
#pragma omp parallel for schedule(dynamic, 2) reduction(+ : count)
    for (int n = 0; n < 100; n++)
        count += n;
#pragma omp parallel for schedule(guided) reduction(+ : count)
    for (int n = 0; n < 100; n++)
        count += n;
#pragma omp parallel for schedule(runtime) reduction(+ : count)
    for (int n = 0; n < 100; n++)
        count += n;
#pragma omp parallel sections reduction(+ : count)
    {
#pragma omp section
        count += 1;
#pragma omp section
        count += 2;
    }
#pragma omp parallel num_threads(1)
    count += 3;
#pragma omp parallel if (0)
    count += 4;
#pragma omp parallel reduction(+ : count)
    {
#pragma omp for schedule(dynamic)
        for (int n = 0; n < 10; n++)
            count += n;
#pragma omp sections
        {
#pragma omp section
            count += 1;
#pragma omp section
            count += 2;
        }
    }
    REQUIRE(count == 3 * 4950 + 3 + 7 + 45 + 3);
    return count;
}

static void clean(void *mutex) { pthread_mutex_unlock(mutex); }

static void *sleep_long(void *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_cleanup_push(clean, mutex);
    for (;;)
        pass_ms(1000);
    pthread_cleanup_pop(1);
    return NULL;
}

static void cancelled(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    void *result;
    REQUIRE(pthread_create(&thread, NULL, sleep_long, &mutex) == 0);
    pass_ms(5);
    pthread_cancel(thread);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    REQUIRE(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

static atomic_int is_held;

static void *hold_and_end(void *mutex)
{
    pthread_mutex_lock(mutex);
    is_held = 1;
    pass_ms(5);
    return NULL;
}

static void kinds(void)
{
    pthread_mutexattr_t kind;
    pthread_mutex_t mutex;
    pthread_t thread;
    mtx_t c11;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &kind);
    REQUIRE(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_lock(&mutex) == 0);
    REQUIRE(pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
    REQUIRE(pthread_mutex_unlock(&mutex) == EPERM);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&mutex, &kind);
    errno = 77;
    REQUIRE(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_lock(&mutex) == EDEADLK);
    REQUIRE(pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == EPERM);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &kind);
    REQUIRE(pthread_create(&thread, NULL, hold_and_end, &mutex) == 0);
    while (!is_held)
        pass_ms(1);
    REQUIRE(pthread_mutex_lock(&mutex) == EOWNERDEAD && errno == 77);
    REQUIRE(pthread_mutex_consistent(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
    pthread_join(thread, NULL);
    pthread_mutexattr_destroy(&kind);
    REQUIRE(mtx_init(&c11, mtx_plain) == thrd_success && mtx_lock(&c11) == thrd_success);
    REQUIRE(mtx_unlock(&c11) == thrd_success);
}

static void shared_with_a_child(void)
{
    pthread_mutexattr_t kind;
    pthread_mutex_t *mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    pid_t child;
    REQUIRE(mutex != MAP_FAILED);
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &kind);
    pthread_mutex_lock(mutex);
    child = fork();
    if (child == 0) {
        pthread_mutex_lock(mutex);
        pthread_mutex_unlock(mutex);
        _exit(7);
    }
    pass_ms(5);
    pthread_mutex_unlock(mutex);
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static long calls_in_tasks(void)
{
    int mine[4], theirs[4] = {0};
    MPI_Request sent[4];
    long count = 0;
    /* Ranks may run tasks in any order: none that waits keeps one that sends from being run. */
#pragma omp parallel num_threads(2)
    {
#pragma omp single
        for (int n = 0; n < 4; n++) {
#pragma omp task firstprivate(n)
            {
                mine[n] = 10 * rank + n;
                MPI_Isend(&mine[n], 1, MPI_INT, 1 - rank, n, WORLD, &sent[n]);
            }
        }
#pragma omp single
        for (int n = 0; n < 4; n++) {
#pragma omp task firstprivate(n)
            MPI_Recv(&theirs[n], 1, MPI_INT, 1 - rank, n, WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Waitall(4, sent, MPI_STATUSES_IGNORE);
    for (int n = 0; n < 4; n++) {
        REQUIRE(theirs[n] == 10 * (1 - rank) + n);
        count += theirs[n];
    }
    return count;
}

int main(int argc, char **argv)
{
    long checksum = 0;
    int provided;
#pragma omp parallel
    REQUIRE(omp_get_num_threads() > 0);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    start_clock();
    REQUIRE(provided == MPI_THREAD_MULTIPLE && size == 2);
    many_threads();
    checksum += nested() + worksharing();
    cancelled();
    kinds();
    shared_with_a_child();
    checksum += calls_in_tasks();
    MPI_Barrier(WORLD);
    result(checksum + sum);
    MPI_Finalize();
}
