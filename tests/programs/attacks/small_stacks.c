/* Calls MPI from threads with the smallest stack there is, at several depths. */
#define _GNU_SOURCE
#include "../common.h"
#include <limits.h>
#include <pthread.h>
#include <sched.h>

static NOINLINE void use(int bytes)
{
    volatile char room[bytes];
    room[0] = room[bytes - 1] = 1;
    MPI_Request request;
    int x = room[0];
    MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF);
    MPI_Irecv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void *call(void *bytes)
{
    use((int)(long)bytes);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    start_clock();
    /* The launcher may have chosen one processor: lists of several are longer. */
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
    /* The library has done its own first calls. */
    use(1);
    pthread_attr_t small;
    pthread_attr_init(&small);
    REQUIRE(pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN) == 0);
    for (long bytes = 1; bytes < 6000; bytes += 200) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, &small, call, (void *)bytes) == 0);
        pthread_join(thread, NULL);
    }
    result(0);
    MPI_Finalize();
    return 0;
}
