/* The frame of all micro programs: a timed loop of steps, each made at the end of a
 * chain of sixteen calls, so that a call path of sixteen frames has to be found anew
 * every time.
 *
 * A program defines CALLS, the MPI calls of one step, before it includes this file, and
 * set_up() and step() after it. One of OpenSHMEM defines SHMEM as well; one whose threads
 * all make these calls, their number THREADS.
 *
 * Usage: program STEPS. Rank 0 prints: MPI calls of all ranks from Init to Finalize; ns
 * per call of the loop: its first thread's processor time, wall time, and wall time of the median of
 * BATCHES parts of the loop, which disturbances from outside do not reach.
 */
#include <mpi.h>
#ifdef SHMEM
#include <shmem.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int rank, ranks;
static void set_up(void);
static void step(void);

/* The empty statement keeps the compiler from making a jump of the call. */
#define LINK(name, next)                                                       \
    static __attribute__((noinline)) void name(void) {                        \
        next();                                                                \
        __asm__ volatile("" ::: "memory");                                     \
    }

LINK(link16, step)
LINK(link15, link16)
LINK(link14, link15)
LINK(link13, link14)
LINK(link12, link13)
LINK(link11, link12)
LINK(link10, link11)
LINK(link9, link10)
LINK(link8, link9)
LINK(link7, link8)
LINK(link6, link7)
LINK(link5, link6)
LINK(link4, link5)
LINK(link3, link4)
LINK(link2, link3)
LINK(link1, link2)

#define BATCHES 100
#ifndef THREADS
#define THREADS 1
#endif

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    long steps = argc > 1 ? atol(argv[1]) : 1000;
#ifdef SHMEM
    /* Or shmem_finalize of Open MPI 4.1.4 fails on Debian 12. */
    setenv("OMPI_MCA_opal_common_ucx_opal_mem_hooks", "0", 1);
#endif
    MPI_Init(&argc, &argv);
#ifdef SHMEM
    shmem_init();
#endif
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    set_up();
    long warm_up = steps / 20 + 1;
    for (long i = 0; i < warm_up; i++)
        link1();
    MPI_Barrier(MPI_COMM_WORLD);
    double batches[BATCHES];
    long batch = steps / BATCHES + 1;
    double start = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
    double before = start;
    for (int b = 0; b < BATCHES; b++) {
        for (long i = 0; i < batch; i++)
            link1();
        double after = now(CLOCK_MONOTONIC);
        batches[b] = after - before;
        before = after;
    }
    cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    qsort(batches, BATCHES, sizeof *batches, compare);
    long in_batch = batch * CALLS, in_loop = in_batch * BATCHES;
    /* Init, Comm_rank, Comm_size, Barrier, Finalize, and those of OpenSHMEM. */
    long all = ranks * (THREADS * (in_loop + warm_up * CALLS) + 5);
    if (rank == 0)
        printf("%ld %.3f %.3f %.3f\n", all, cpu / in_loop, (before - start) / in_loop,
               batches[BATCHES / 2] / in_batch);
#ifdef SHMEM
    shmem_finalize();
#else
    MPI_Finalize();
#endif
    return 0;
}
