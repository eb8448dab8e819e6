/* Ranks that end in all the wrong ways after some waiting that is worth a report. The argument
 * says how rank 1 ends: exit, _exit, return, segv, term, kill, abort, exec, thread, stack (it runs
 * out of it), signal (whose handler calls MPI_Abort while a receive waits). */
#include "../common.h"
#include <pthread.h>
#include <signal.h>

static void *poll_for_ever(void *unused)
{
    int found = 0;
    for (;;)
        MPI_Iprobe(MPI_ANY_SOURCE, 99, WORLD, &found, MPI_STATUS_IGNORE);
    return unused;
}

static void abort_all(int unused)
{
    (void)unused;
    MPI_Abort(WORLD, 9);
}

/* Calls MPI ever deeper. */
static int descend(int depth)
{
    volatile char frame[200];
    frame[depth % 200] = 1;
    MPI_Send(&depth, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD);
    return depth < 0 ? 0 : descend(depth + 1) + frame[depth % 100];
}

int main(int argc, char **argv)
{
    const char *how;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    start_clock();
    how = argv[1];
    for (int round = 0; round < 3; round++) {
        int value = -1;
        if (rank == 0) {
            at(round, DELAY);
            MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD);
        } else if (rank == 1) {
            at(round, 0);
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
            REQUIRE(value == round);
        }
    }
    at(3, 0);
    result(rank);
    fflush(NULL);
    at(3, 50);
    if (rank == 1) {
        if (strcmp(how, "thread") == 0) {
            pthread_t thread;
            pthread_create(&thread, NULL, poll_for_ever, NULL);
            usleep(20000);
            exit(0);
        }
        if (strcmp(how, "exit") == 0)
            exit(0);
        if (strcmp(how, "_exit") == 0)
            _exit(0);
        if (strcmp(how, "return") == 0)
            return 5;
        if (strcmp(how, "segv") == 0)
            raise(SIGSEGV);
        if (strcmp(how, "term") == 0)
            raise(SIGTERM);
        if (strcmp(how, "kill") == 0)
            raise(SIGKILL);
        if (strcmp(how, "abort") == 0)
            MPI_Abort(WORLD, 9);
        if (strcmp(how, "stack") == 0)
            return descend(0);
        if (strcmp(how, "signal") == 0) {
            int never;
            signal(SIGALRM, abort_all);
            ualarm(50000, 0);
            MPI_Recv(&never, 1, MPI_INT, 0, 77, WORLD, MPI_STATUS_IGNORE);
        }
        if (strcmp(how, "exec") == 0)
            execl("/bin/true", "true", (char *)NULL);
    }
    MPI_Finalize();
    return 0;
}
