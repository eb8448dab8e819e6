/* What rank 0 does in reductions, by the first argument: in the program's function for them it works, sleeps, touches
 * new memory, or has its processor taken by another thread, also after it waited; or it only waits while another
 * thread has its processor. Or it looks for what nobody sends before them, and gives its processor to another thread at each
 * look. At the end it says how much of it was what without the waiting, ns. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

enum { ROUNDS = 20, BYTES = 4 << 20 };
static const double PART = 20e6, SHORT = 5e3; /* ns */

static atomic_int is_over, is_wanted;
static int is_short;
static int rank;
static const char *what;
static double off, kernel, looked;

static double clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}

static double wall(void) { return clock_ns(CLOCK_MONOTONIC); }
static double processor(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

static void work(double ns)
{
    volatile double sum = 0;
    for (double until = processor() + ns; processor() < until;)
        for (int n = 0; n < 200000; n++)
            sum = sum + n;
}

static void *compete(void *unused)
{
    while (!is_over) {
        struct timespec pause = {.tv_nsec = 200000};
        if (!is_wanted)
            nanosleep(&pause, NULL);
        else if (is_short) {
            for (double until = wall() + SHORT; wall() < until;)
                ;
            sched_yield();
        }
    }
    return unused;
}

/* Until others have had the processor for so long. */
static void share(double ns)
{
    is_wanted = 1;
    for (double since = wall() - processor(); wall() - processor() - since < ns;)
        ;
    is_wanted = 0;
}

/* The same in looks: the library gives the processor away in each. */
static void look(double ns)
{
    int found = 0;
    is_wanted = 1;
    double begin = wall(), since = begin - processor();
    while (wall() - processor() - since < ns)
        for (int n = 0; n < 16; n++)
            MPI_Iprobe(1, 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    off += wall() - processor() - since;
    looked += wall() - begin;
    is_wanted = 0;
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

/* The function of the reductions. The other rank gives the time at which it came: from then on, rank 0 has all, and
 * would go on at once if it had a processor. */
static void reduce(void *in, void *inout, int *count, MPI_Datatype *type)
{
    struct rusage before, after;
    double since = wall(), used = processor();
    double *others = in, *sums = inout;
    (void)type;
    getrusage(RUSAGE_THREAD, &before);
    for (int n = 0; n < *count; n++) {
        double came = others[n] > sums[n] ? others[n] : sums[n];
        off += since > came && is_wanted ? since - came : 0;
        sums[n] += others[n];
    }
    if (strcmp(what, "shared") == 0 || strcmp(what, "waited") == 0)
        share(PART);
    else if (strcmp(what, "sleep") == 0)
        nanosleep(&(struct timespec){.tv_nsec = PART}, NULL);
    else if (strcmp(what, "touch") == 0)
        touch(PART);
    else if (strcmp(what, "work") == 0)
        work(PART);
    getrusage(RUSAGE_THREAD, &after);
    kernel += 1e9 * (after.ru_stime.tv_sec - before.ru_stime.tv_sec)
              + 1e3 * (after.ru_stime.tv_usec - before.ru_stime.tv_usec);
    off += wall() - since - (processor() - used);
}

int main(int argc, char **argv)
{
    double time, sum;
    pthread_t other;
    MPI_Op op;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Op_create(reduce, 1, &op);
    what = argv[1];
    int waits = strcmp(what, "waits") == 0 || strcmp(what, "waited") == 0;
    is_short = strcmp(what, "looks") == 0;
    int is_shared = rank == 0 && (waits || is_short || strcmp(what, "shared") == 0);
    if (is_shared) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(sched_getcpu(), &set);
        sched_setaffinity(0, sizeof set, &set);
        pthread_create(&other, NULL, compete, NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        if (waits) {
            /* Rank 0 waits, and others have its processor meanwhile. */
            is_wanted = rank == 0;
            if (rank == 1)
                work(PART);
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 1)
                work(PART / 2);
        }
        if (is_short && rank == 0)
            look(PART);
        time = rank == 0 ? 0 : wall();
        MPI_Reduce(&time, &sum, 1, MPI_DOUBLE, op, 0, MPI_COMM_WORLD);
        is_wanted = 0;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    is_over = 1;
    if (is_shared)
        pthread_join(other, NULL);
    if (rank == 0)
        printf("{\"off\": %.0f, \"kernel\": %.0f, \"looked\": %.0f}\n", off, kernel, looked);
    MPI_Op_free(&op);
    MPI_Finalize();
    return 0;
}
