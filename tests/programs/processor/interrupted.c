/* A handler of the program's own comes every 300 us, wherever the program is: in MPI, in locks, in computation, in deep
 * recursion. It asks for the time, posts and takes locks of its own, and in one part of each round jumps away. The
 * results are the same as ever, and no call is missing.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 60, DEEP = 40 };

static volatile sig_atomic_t may_jump, came, jumped;
static sigjmp_buf back;
static sem_t posted;
static pthread_mutex_t of_handler = PTHREAD_MUTEX_INITIALIZER, shared = PTHREAD_MUTEX_INITIALIZER;
static volatile double sink;
static int rank, size;
static long counted;

static void on_signal(int signal)
{
    (void)signal;
    came++;
    sink += MPI_Wtime() * 0;
    sem_post(&posted);
    if (pthread_mutex_trylock(&of_handler) == 0)
        pthread_mutex_unlock(&of_handler);
    if (may_jump) {
        may_jump = 0;
        jumped++;
        siglongjmp(back, 1);
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void compute(double ms)
{
    for (double until = seconds() + 1e-3 * ms; seconds() < until;)
        for (int n = 0; n < 200; n++)
            sink = sink * 0.999 + 1;
}

/* Calls at the end of a deep stack. */
static __attribute__((noinline)) long deep(int levels, long value)
{
    volatile char room[64];
    room[0] = (char)levels;
    if (levels > 0)
        return deep(levels - 1, value) + room[0] * 0;
    long next = 0, sum = 0;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Sendrecv(&value, 1, MPI_LONG, to, 1, &next, 1, MPI_LONG, from, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Allreduce(&next, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

/* Computes until the handler jumps away, and asks for the time meanwhile. */
static void leave_by_jump(void)
{
    if (sigsetjmp(back, 1) == 0) {
        may_jump = 1;
        for (;;) {
            sink += MPI_Wtime() * 0;
            compute(0.01);
        }
    }
}

static void *contend(void *unused)
{
    for (int round = 0; round < 20 * ROUNDS; round++) {
        pthread_mutex_lock(&shared);
        counted++;
        compute(0.05);
        pthread_mutex_unlock(&shared);
        if (round % 20 == 0)
            MPI_Barrier(MPI_COMM_SELF);
    }
    return unused;
}

int main(int argc, char **argv)
{
    int provided;
    long sum = 0;
    pthread_t thread;
    sigset_t mine;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sem_init(&posted, 0, 0);
    /* The other threads do not take it. */
    sigemptyset(&mine);
    sigaddset(&mine, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &mine, NULL);
    pthread_create(&thread, NULL, contend, NULL);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = gettid();
    timer_t timer;
    struct itimerspec often = {{0, 300000}, {0, 300000}};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &often, NULL);
    pthread_sigmask(SIG_UNBLOCK, &mine, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        sum += deep(round % DEEP, rank + round);
        compute(1);
        pthread_mutex_lock(&shared);
        counted++;
        pthread_mutex_unlock(&shared);
        leave_by_jump();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    timer_delete(timer);
    pthread_join(thread, NULL);
    int posts = 0;
    sem_getvalue(&posted, &posts);
    printf("%d: sum %ld, counted %ld, jumped %d, posted %d, came %d\n", rank, sum, counted,
           (int)jumped, posts == came, came > ROUNDS);
    MPI_Finalize();
    return 0;
}
