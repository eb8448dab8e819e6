// The first rank starts threads that call nothing, one after the other, waits for the end of each, and is late. The
// argument says how they are started: `posix`, `c11`, or `cpp`. The rank says how long the threads computed in which
// function, ns.
//
// Built with -pthread, run with two ranks.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mpi.h>
#include <pthread.h>
#include <thread>
#include <threads.h>

enum { ROUNDS = 8 };
// Some samples of each function, also where there is one each 4 ms.
static const double PART = 60e6; /* ns */

static volatile double sum;
static double spent[2];

static double processor()
{
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}

extern "C" __attribute__((noinline)) void assemble()
{
    double begin = processor();
    while (processor() < begin + PART)
        for (int n = 0; n < 100000; n++)
            sum = sum * 0.999 + 1;
    spent[0] += processor() - begin;
}

extern "C" __attribute__((noinline)) void solve()
{
    double begin = processor();
    while (processor() < begin + 2 * PART)
        for (int n = 0; n < 100000; n++)
            sum = sum * 1.001 + 1;
    spent[1] += processor() - begin;
}

static void compute()
{
    assemble();
    solve();
}

static void *of_posix(void *unused)
{
    compute();
    return unused;
}

static int of_c11(void *)
{
    compute();
    return 0;
}

int main(int argc, char **argv)
{
    int rank, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *way = argc > 1 ? argv[1] : "";
    for (int round = 0; rank == 0 && round < ROUNDS; round++) {
        if (strcmp(way, "posix") == 0) {
            pthread_t thread;
            pthread_create(&thread, nullptr, of_posix, nullptr); // MARK posix
            pthread_join(thread, nullptr);
        } else if (strcmp(way, "c11") == 0) {
            thrd_t thread;
            thrd_create(&thread, of_c11, nullptr); // MARK c11
            thrd_join(thread, nullptr);
        } else {
            std::thread thread(compute); // MARK cpp
            thread.join();
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"assemble\": %.0f, \"solve\": %.0f}\n", spent[0], spent[1]);
    MPI_Finalize();
}
