/* Two threads that the program starts compute at the same time, while the first thread waits for their end; or, by the
 * argument `asleep`, they sleep nearly all the time while the first one computes. All have one processor; by the
 * argument `later`, from when MPI is there.
 *
 * Built with -pthread, run with one rank.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { THREADS = 2 };
static const double ALL = 0.2, PART = 0.01; /* s */
static int is_asleep;

static double processor(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void work(double s)
{
    for (double until = processor() + s; processor() < until;)
        ;
}

static void *compute(void *unused)
{
    if (is_asleep)
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    work(is_asleep ? PART : ALL);
    return unused;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t threads[THREADS];
    cpu_set_t one, all;
    is_asleep = argc > 1 && strcmp(argv[1], "asleep") == 0;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    int is_later = argc > 1 && strcmp(argv[1], "later") == 0;
    /* The launcher may have chosen one. */
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof one, is_later ? &all : &one);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    if (is_later)
        sched_setaffinity(0, sizeof one, &one);
    for (int at = 0; at < THREADS; at++)
        pthread_create(&threads[at], NULL, compute, NULL);
    if (is_asleep)
        work(ALL);
    for (int at = 0; at < THREADS; at++)
        pthread_join(threads[at], NULL);
    printf("done\n");
    MPI_Finalize();
}
