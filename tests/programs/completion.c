/* A rank gets out of a barrier, of an allreduce and of an exchange with its neighbours long after
 * the others: a signal handler holds it back inside the call, as an interrupt of the machine would.
 *
 * RUN np=2
 * NOT_WITH mpich because="no rank leaves its barrier while another one is held back in it"
 * EXPECT barrier_completion at=@barrier ranks=0 severity=0.180 operation=MPI_Barrier
 * EXPECT nxn_completion at=@allreduce ranks=0 severity=0.180 operation=MPI_Allreduce
 * EXPECT nxn_completion at=@exchange ranks=0 severity=0.180 operation=MPI_Neighbor_alltoall
 * EXPECT wait_at_barrier at=@barrier ranks=0 severity=0.060 cause_rank=1
 * EXPECT wait_at_nxn at=@allreduce ranks=0 severity=0.060 cause_rank=1
 * EXPECT wait_at_nxn at=@exchange ranks=0 severity=0.060 cause_rank=1
 */
#include "common.h"
#include <signal.h>
#include <sys/time.h>

static int held_round;

static void hold(int unused)
{
    (void)unused;
    at(held_round, 80);
}

/* Lets the handler run 10 ms from now. */
static void hold_soon(int round)
{
    struct itimerval timer = {{0, 0}, {0, 10000}};
    held_round = round;
    setitimer(ITIMER_REAL, &timer, NULL);
}

int main(int argc, char **argv)
{
    long sum = 0;
    int sides[1] = {2}, periodic[1] = {0};
    MPI_Comm line;
    start(&argc, &argv);
    MPI_Cart_create(WORLD, 1, sides, periodic, 0, &line);
    signal(SIGALRM, hold);
    for (int round = 0; round < 9; round++) {
        long in = 1, out = 0;
        at(round, rank == 0 ? 0 : 20);
        if (rank == 0)
            hold_soon(round);
        if (round % 3 == 0)
            MPI_Barrier(WORLD); /* MARK barrier */
        else if (round % 3 == 1) {
            long to[2] = {rank, rank}, from[2] = {-1, -1};
            MPI_Neighbor_alltoall(to, 1, MPI_LONG, from, 1, MPI_LONG, line); /* MARK exchange */
            REQUIRE(from[rank == 0] == 1 - rank);
        } else {
            MPI_Allreduce(&in, &out, 1, MPI_LONG, MPI_SUM, WORLD); /* MARK allreduce */
            REQUIRE(out == 2);
        }
        sum += out;
    }
    MPI_Comm_free(&line);
    finish(9, sum);
}
