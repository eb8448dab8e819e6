/* What rank 0 does before it sends, by the first argument: it works, sleeps, has its processor taken by
 * another thread or process, also in many short stretches between calls, or touches new memory. With OpenMP, that is in a parallel region of one thread. At the end it
 * says how much of it was what, ns. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 20, BYTES = 4 << 20 };
static const double PART = 20e6; /* ns */

/* Shared with the process that competes. */
static struct {
    atomic_int is_over, is_wanted;
} *told;

static double clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}

static double wall(void) { return clock_ns(CLOCK_MONOTONIC); }
static double processor(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

/* Without system calls: the kernel has a part in these. */
static void work(double ns)
{
    volatile double sum = 0;
    for (double until = processor() + ns; processor() < until;)
        for (int n = 0; n < 200000; n++)
            sum = sum + n;
}

static void touch(double ns)
{
    for (double until = processor() + ns; processor() < until;) {
        char *bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int at = 0; at < BYTES; at += 4096)
            bytes[at] = 1;
        munmap(bytes, BYTES);
    }
}

static void *compete(void *unused)
{
    while (!told->is_over) {
        struct timespec pause = {.tv_nsec = 200000};
        if (!told->is_wanted)
            nanosleep(&pause, NULL);
    }
    return unused;
}

/* Until others have had the processor for so long. */
static void share(double ns)
{
    told->is_wanted = 1;
    for (double since = wall() - processor(); wall() - processor() - since < ns;)
        ;
    told->is_wanted = 0;
}

/* The same in stretches that are shorter than others have the processor, so that the kernel takes it at the ends of
 * many. They ask no clock. */
static void share_briefly(double ns)
{
    volatile double sum = 0;
    told->is_wanted = 1;
    for (double since = wall() - processor(); wall() - processor() - since < ns;)
        for (int stretch = 0; stretch < 20; stretch++) {
            for (int n = 0; n < 300000; n++)
                sum = sum + n;
            MPI_Barrier(MPI_COMM_SELF);
        }
    told->is_wanted = 0;
}

int main(int argc, char **argv)
{
    int rank, value = 0;
    double slept = 0, worked = 0, off = 0, kernel = 0;
    long faults = 0;
    pthread_t other;
    pid_t process = 0;
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *what = argv[1];
    int is_brief = strcmp(what, "briefly") == 0;
    int is_process = strcmp(what, "process") == 0;
    int is_shared = rank == 0 && (is_brief || is_process || strcmp(what, "shared") == 0);
    if (is_shared) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(sched_getcpu(), &set);
        sched_setaffinity(0, sizeof set, &set);
        if (!is_process)
            pthread_create(&other, NULL, compete, NULL);
        else if ((process = fork()) == 0) {
            /* It ends with its parent, however that ends. */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            compete(NULL);
            _exit(0);
        }
    }
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD); /* MARK begin */
        if (rank == 0) {
            struct rusage before, after;
            double begin = wall(), used = processor();
            getrusage(RUSAGE_THREAD, &before);
            work(PART / 4);
#pragma omp parallel num_threads(1)
            {
                if (is_shared && is_brief)
                    share_briefly(PART);
                else if (is_shared)
                    share(PART);
                else if (strcmp(what, "touch") == 0)
                    touch(PART);
                else if (strcmp(what, "sleep") == 0) {
                    struct timespec part = {.tv_nsec = PART};
                    double start = wall();
                    nanosleep(&part, NULL);
                    slept += wall() - start;
                } else
                    work(PART);
            }
            getrusage(RUSAGE_THREAD, &after);
            faults += after.ru_minflt - before.ru_minflt;
            kernel += 1e9 * (after.ru_stime.tv_sec - before.ru_stime.tv_sec)
                      + 1e3 * (after.ru_stime.tv_usec - before.ru_stime.tv_usec);
            worked += processor() - used;
            off += wall() - begin - (processor() - used);
            MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD); /* MARK end */
        } else {
            MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    told->is_over = 1;
    if (is_shared && is_process)
        waitpid(process, NULL, 0);
    else if (is_shared)
        pthread_join(other, NULL);
    if (rank == 0)
        printf("{\"slept\": %.0f, \"worked\": %.0f, \"off\": %.0f, \"kernel\": %.0f, \"faults\": %ld}\n", slept,
               worked, off, kernel, faults);
    MPI_Finalize();
    return 0;
}
