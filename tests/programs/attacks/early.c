/* Threads that end early in all the ways there are, long before Finalize: each has made CALLS
 * calls. The main thread runs out of stack in a function of its own, and recovers by siglongjmp. */
#include "../common.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

enum { CALLS = 5 };

static sigjmp_buf recovered;
static pthread_barrier_t called;

static void call(void)
{
    int x = 0;
    for (int i = 0; i < CALLS; i++)
        MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF);
}

static void *returns(void *unused)
{
    call();
    return unused;
}

static void *exits(void *unused)
{
    call();
    pthread_exit(unused);
}

static void *is_cancelled(void *unused)
{
    call();
    pthread_barrier_wait(&called);
    for (;;)
        pause();
    return unused;
}

static void *is_detached(void *unused)
{
    call();
    pthread_barrier_wait(&called);
    return unused;
}

static void back(int unused)
{
    (void)unused;
    siglongjmp(recovered, 1);
}

static int descend(int depth)
{
    volatile char frame[1000];
    frame[depth % 1000] = 1;
    return depth < 0 ? 0 : descend(depth + 1) + frame[depth % 500];
}

static void run_out_of_stack(void)
{
    static char other[65536];
    stack_t stack = {.ss_sp = other, .ss_size = sizeof other};
    struct sigaction action = {.sa_handler = back, .sa_flags = SA_ONSTACK};
    struct sigaction before;
    REQUIRE(sigaltstack(&stack, NULL) == 0);
    REQUIRE(sigaction(SIGSEGV, &action, &before) == 0);
    if (sigsetjmp(recovered, 1) == 0)
        exit(descend(0));
    REQUIRE(sigaction(SIGSEGV, &before, NULL) == 0);
}

int main(int argc, char **argv)
{
    long sum = 0;
    int provided;
    pthread_t threads[3], detached;
    void *end;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    start_clock();
    pthread_barrier_init(&called, NULL, 3);
    REQUIRE(pthread_create(&threads[0], NULL, returns, NULL) == 0);
    REQUIRE(pthread_create(&threads[1], NULL, exits, NULL) == 0);
    REQUIRE(pthread_create(&threads[2], NULL, is_cancelled, NULL) == 0);
    REQUIRE(pthread_create(&detached, NULL, is_detached, NULL) == 0);
    pthread_detach(detached);
    pthread_barrier_wait(&called);
    REQUIRE(pthread_cancel(threads[2]) == 0);
    for (int i = 0; i < 3; i++)
        REQUIRE(pthread_join(threads[i], &end) == 0);
    REQUIRE(end == PTHREAD_CANCELED);
    run_out_of_stack();
    for (int round = 0; round < 3; round++) {
        int value = -1;
        at(round + 1, rank == 0 ? DELAY : 0);
        if (rank == 0)
            MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD);
        else
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
        sum += value;
    }
    finish(4, sum);
}
