/* Ranks that never come back from a call, or never call again, each as its argument says, until
 * a timer ends them; nothing of theirs runs then. Of "ends" none hangs. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LARGE = 1 << 22 };
static char large[LARGE];
static int rank, ranks;

/* Ends this process by a signal, after so many milliseconds. */
static void end_in(int ms, int signal)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal};
    struct itimerspec time = {.it_value = {ms / 1000, ms % 1000 * 1000000L}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &time, NULL))
        abort();
}

__attribute__((noinline)) static void receive(int from)
{
    int value;
    MPI_Recv(&value, 1, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void send(int to)
{
    MPI_Send(large, LARGE, MPI_CHAR, to, 8, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void wait_for(int from)
{
    int value;
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, from, 9, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void compute(void)
{
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    const char *scene = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm pair;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, -rank, &pair);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(scene, "ends"))
        end_in(1000 + 100 * rank, rank == 0 ? SIGKILL : SIGALRM);
    int next = (rank + 1) % ranks;
    if (!strcmp(scene, "one")) {
        /* Rank 1 waits for rank 2, which computes; rank 0 waits for both to finalise. */
        if (rank == 1)
            receive(2);
        if (rank == 2)
            compute();
    } else if (!strcmp(scene, "circle")) {
        receive(next);
    } else if (!strcmp(scene, "sends")) {
        send(next);
    } else if (!strcmp(scene, "barrier")) {
        /* Ranks 0 and 1 have another order in their communicator, with the ranks 1 and 0. */
        if (rank == 0)
            receive(1);
        if (rank == 1)
            MPI_Barrier(pair);
        if (rank == 2)
            wait_for(0);
    } else if (!strcmp(scene, "computes")) {
        compute();
    } else if (!strcmp(scene, "exchanges")) {
        /* Somebody is in a call at any time, and nobody hangs. */
        for (int i = 0;; i++) {
            int mine = i, other;
            for (volatile int n = 0; rank == 0 && n < 20000; n++)
                ;
            MPI_Sendrecv(&mine, 1, MPI_INT, next, 3, &other, 1, MPI_INT, (rank + ranks - 1) % ranks,
                         3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Comm_free(&pair);
    MPI_Finalize();
    return 0;
}
