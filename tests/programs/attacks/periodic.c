/* Collectives of all kinds for half a second, while clocks are compared again and again.
 * Argument: `world` makes most of them on MPI_COMM_WORLD, `others` none, `threads` lets the
 * threads of a rank make them in turns while others exchange messages, `few` makes one;
 * `uneven` is as `world`, and the user chose that rank 1 is not recorded. */
#include "../common.h"
#include <pthread.h>

enum { ROUNDS = 50, THREADS = 2 };
static pthread_barrier_t turn;
static long sums[THREADS + 1];

/* A round of collectives on a communicator; gives a number that depends on all of them. */
static long round_on(MPI_Comm comm, int number)
{
    int own, all;
    MPI_Comm_rank(comm, &own);
    MPI_Comm_size(comm, &all);
    long in = own + number, sum = 0, upto = 0, from = own == 0 ? number : -1;
    MPI_Request request;
    MPI_Barrier(comm);
    MPI_Allreduce(&in, &sum, 1, MPI_LONG, MPI_SUM, comm);
    REQUIRE(sum == (long)all * (all - 1) / 2 + (long)all * number);
    MPI_Bcast(&from, 1, MPI_LONG, 0, comm);
    REQUIRE(from == number);
    MPI_Scan(&in, &upto, 1, MPI_LONG, MPI_SUM, comm);
    MPI_Reduce(own == 0 ? MPI_IN_PLACE : &in, &in, 1, MPI_LONG, MPI_MAX, 0, comm);
    MPI_Iallreduce(MPI_IN_PLACE, &upto, 1, MPI_LONG, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return sum + upto;
}

/* Rounds on the world by one thread and messages by the other, then the other way round. */
static void *take_turns(void *argument)
{
    long self = (long)argument;
    for (int number = 0; number < ROUNDS; number++) {
        at_ms(10 * number);
        pthread_barrier_wait(&turn);
        if (number % THREADS == self) {
            sums[self] += round_on(WORLD, number);
        } else {
            long out = number, in = -1;
            int peer = rank ^ 1;
            if (peer < size)
                MPI_Sendrecv(&out, 1, MPI_LONG, peer, 9, &in, 1, MPI_LONG, peer, 9, WORLD, MPI_STATUS_IGNORE);
            sums[self] += in;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "world";
    int threads = strcmp(how, "threads") == 0, provided;
    int uneven = strcmp(how, "uneven") == 0;
    const char *own = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
    MPI_Comm half, twin;
    if (uneven && own && atoi(own) == 1)
        setenv("LAGGARD_MODE", "off", 1);
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    start_clock();
    MPI_Comm_split(WORLD, rank % 2, rank, &half);
    MPI_Comm_dup(WORLD, &twin);
    if (threads) {
        pthread_t made[THREADS];
        REQUIRE(provided == MPI_THREAD_MULTIPLE);
        pthread_barrier_init(&turn, NULL, THREADS);
        for (long self = 0; self < THREADS; self++)
            REQUIRE(pthread_create(&made[self], NULL, take_turns, (void *)self) == 0);
        for (int self = 0; self < THREADS; self++)
            pthread_join(made[self], NULL);
    } else if (strcmp(how, "few") != 0) {
        for (int number = 0; number < ROUNDS; number++) {
            at_ms(10 * number);
            if (uneven || strcmp(how, "world") == 0)
                sums[0] += round_on(WORLD, number);
            /* Halves of the ranks make different numbers of these. */
            for (int more = 0; more <= rank % 2; more++)
                sums[1] += round_on(half, number + more);
            sums[2] += round_on(twin, number);
        }
    }
    result(sums[0] + sums[1] + sums[2]);
    MPI_Comm_free(&half);
    MPI_Comm_free(&twin);
    MPI_Finalize();
    return 0;
}
