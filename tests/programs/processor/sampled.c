/* Rank 0 is late since it is longer in solve(). In assemble() both ranks are equally long; by the argument
 * `together`, in both functions, and rank 0 sleeps instead. By `paused`, both compute in unseen() before, while
 * recording is paused. Each rank says how long it was where, ns. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 40 };
static const double PART = 8e6; /* ns */

static volatile double sum;
static double spent[2], beside;

static double processor(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}

/* A loop that takes about as long for each rank, with few calls of the clock. */
static inline __attribute__((always_inline)) void work(double ns, double factor, double *to)
{
    double begin = processor();
    while (processor() < begin + ns)
        for (int n = 0; n < 100000; n++)
            sum = sum * factor + 1;
    *to += processor() - begin;
}

__attribute__((noinline)) static void assemble(double ns)
{
    work(ns, 0.999, &spent[0]);
}

__attribute__((noinline)) static void solve(double ns)
{
    work(ns, 1.001, &spent[1]);
}

__attribute__((noinline)) static void unseen(double ns)
{
    work(ns, 1.002, &beside);
}

int main(int argc, char **argv)
{
    int rank, together = argc > 1 && strcmp(argv[1], "together") == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1 && strcmp(argv[1], "paused") == 0) {
        MPI_Pcontrol(0);
        for (int round = 0; round < ROUNDS; round++) {
            static char room[MPI_BSEND_OVERHEAD];
            char *given;
            int size;
            unseen(PART);
            /* Calls that match none of other ranks are left out. */
            MPI_Buffer_attach(room, sizeof room);
            MPI_Buffer_detach(&given, &size);
        }
        MPI_Pcontrol(1);
    }
    for (int round = 0; round < ROUNDS; round++) {
        assemble(2 * PART);
        solve(rank == 0 && !together ? 4 * PART : PART);
        if (rank == 0 && together) {
            struct timespec pause = {.tv_nsec = 20000000};
            nanosleep(&pause, NULL);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    double all[2][2];
    MPI_Gather(spent, 2, MPI_DOUBLE, all, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"assemble\": %.0f, \"solve\": %.0f, \"ranks\": [%.0f, %.0f]}\n",
               all[0][0] - all[1][0], all[0][1] - all[1][1], all[0][0] + all[0][1], all[1][0] + all[1][1]);
    MPI_Finalize();
}
