/* In each of ROUNDS rounds one rank sleeps for PART, and the others wait for it, as the first argument says: before it starts several
 * requests at once ("startall"), in a read of a pipe ("pipe"), in a thread that it started and waits for
 * ("thread"), in both threads of a parallel region ("team"), or before it exchanges values with its neighbours on a line ("neighbours"). In "seldom" it sleeps before a
 * barrier, and ranks come to many others nearly at once. In "spawned" it is a process outside of the run that sleeps. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORLD MPI_COMM_WORLD
enum { ROUNDS = 10, PART_MS = 50, MEETINGS = 100 };

static int rank, size, ends[2];
static MPI_Comm line;

static void nap(double ms)
{
    long ns = ms * 1e6;
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static void *feed(void *unused)
{
    for (int round = 0; round < ROUNDS; round++) {
        nap(PART_MS);
        if (write(ends[1], "x", 1) != 1)
            return NULL;
    }
    return unused;
}

static void *sleeps(void *unused)
{
    nap(PART_MS);
    return unused;
}

static void startall(void)
{
    int sent = rank, received, other = 1 - rank;
    MPI_Request both[2];
    MPI_Send_init(&sent, 1, MPI_INT, other, 0, WORLD, &both[0]);
    MPI_Recv_init(&received, 1, MPI_INT, other, 0, WORLD, &both[1]);
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 0)
            nap(PART_MS);
        MPI_Startall(2, both);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
}

static void outside(MPI_Comm parent)
{
    int value = 0;
    if (parent == MPI_COMM_NULL) {
        MPI_Comm children;
        extern char *program_invocation_name;
        char *words[] = {"spawned", NULL};
        MPI_Comm_spawn(program_invocation_name, words, 1, MPI_INFO_NULL, 0, WORLD, &children, MPI_ERRCODES_IGNORE);
        for (int round = 0; round < ROUNDS; round++) {
            if (rank == 0)
                MPI_Recv(&value, 1, MPI_INT, 0, 0, children, MPI_STATUS_IGNORE);
            MPI_Barrier(WORLD);
        }
        MPI_Comm_disconnect(&children);
        return;
    }
    for (int round = 0; round < ROUNDS; round++) {
        nap(PART_MS);
        MPI_Send(&value, 1, MPI_INT, 0, 0, parent);
    }
    MPI_Comm_disconnect(&parent);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int one = 1, sum, provided, no = 0, values[2] = {0, 0}, others[2];
    pthread_t thread;
    MPI_Comm parent;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    MPI_Comm_get_parent(&parent);
    MPI_Cart_create(WORLD, 1, &size, &no, 0, &line);
    int reads = strcmp(what, "pipe") == 0 && rank == 1;
    if (reads && pipe(ends) == 0)
        pthread_create(&thread, NULL, feed, NULL);
    MPI_Barrier(WORLD);
    if (strcmp(what, "startall") == 0)
        startall();
    else if (strcmp(what, "spawned") == 0)
        outside(parent);
    else
        for (int round = 0; round < ROUNDS; round++) {
            char byte;
            if (reads && read(ends[0], &byte, 1) != 1)
                return 1;
            if (strcmp(what, "thread") == 0 && rank == 1) {
                pthread_t own;
                pthread_create(&own, NULL, sleeps, NULL);
                pthread_join(own, NULL);
            }
            if (strcmp(what, "team") == 0) {
#pragma omp parallel num_threads(2)
                nap(rank == 1 ? PART_MS : 0.1 * PART_MS);
            }
            if ((strcmp(what, "neighbours") == 0 && rank == 0) || (strcmp(what, "seldom") == 0 && rank == 1))
                nap(PART_MS);
            if (strcmp(what, "neighbours") == 0)
                MPI_Neighbor_alltoall(values, 1, MPI_INT, others, 1, MPI_INT, line);
            else
                MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, WORLD);
            for (int meeting = 0; strcmp(what, "seldom") == 0 && meeting < MEETINGS; meeting++) {
                if (rank == 1)
                    nap(0.01);
                MPI_Barrier(WORLD);
            }
        }
    if (reads)
        pthread_join(thread, NULL);
    MPI_Comm_free(&line);
    MPI_Finalize();
    return 0;
}
