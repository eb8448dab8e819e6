/* Many short-lived threads with small stacks, each with messages of its own; threads that are cancelled
 * while they call at ever new places; timer signals all the while; MPI is initialised by one thread and finalised by
 * the same. */
#include "../common.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

enum { WAVES = 16, WIDTH = 4, STACK = 128 * 1024 };
static volatile sig_atomic_t ticks;

static void tick(int unused)
{
    (void)unused;
    ticks++;
}

static void *exchange(void *argument)
{
    long tag = (long)argument, value = tag * 3, in = -1;
    int peer = 1 - rank;
    MPI_Status status;
    MPI_Sendrecv(&value, 1, MPI_LONG, peer, tag, &in, 1, MPI_LONG, peer, tag, WORLD, &status);
    REQUIRE(in == value && status.MPI_TAG == tag);
    return (void *)in;
}

/* Calls at a place of its own for each number. */
static __attribute__((noinline)) int call_at(unsigned place, int depth)
{
    if (depth == 0)
        return MPI_Barrier(MPI_COMM_SELF);
    if (place & 1)
        return call_at(place >> 1, depth - 1) + 1;
    return call_at(place >> 1, depth - 1) - 1;
}

/* Nothing in it but this may be the end of the thread. */
static void *call_until_cancelled(void *unused)
{
    for (unsigned place = 0;; place++) {
        call_at(place, 14);
        if (place % 256 == 0)
            pthread_testcancel();
    }
    return unused;
}

static void cancel_some(const pthread_attr_t *small, long wave)
{
    pthread_t threads[WIDTH];
    struct timespec while_ = {.tv_nsec = 1000000 + 300000 * wave};
    for (long i = 0; i < WIDTH; i++)
        REQUIRE(pthread_create(&threads[i], small, call_until_cancelled, NULL) == 0);
    nanosleep(&while_, NULL);
    for (long i = 0; i < WIDTH; i++)
        pthread_cancel(threads[i]);
    for (long i = 0; i < WIDTH; i++) {
        void *end;
        REQUIRE(pthread_join(threads[i], &end) == 0 && end == PTHREAD_CANCELED);
    }
}

int main(int argc, char **argv)
{
    int provided;
    long sum = 0;
    struct sigaction action;
    struct itimerval timer = {{0, 2000}, {0, 2000}};
    pthread_attr_t small;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    start_clock();
    REQUIRE(provided == MPI_THREAD_MULTIPLE);
    memset(&action, 0, sizeof action);
    action.sa_handler = tick;
    action.sa_flags = SA_RESTART;
    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &timer, NULL);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    for (long wave = 0; wave < WAVES; wave++) {
        pthread_t threads[WIDTH];
        for (long i = 0; i < WIDTH; i++)
            REQUIRE(pthread_create(&threads[i], &small, exchange, (void *)(wave * WIDTH + i)) == 0);
        for (long i = 0; i < WIDTH; i++) {
            void *in;
            pthread_join(threads[i], &in);
            sum += (long)in;
        }
        cancel_some(&small, wave);
    }
    result(sum);
    MPI_Finalize();
    return 0;
}
