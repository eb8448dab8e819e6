/* Ranks 0 and 1 are on one host, 2 and 3 on another, further ones wherever: they wait within a
 * host, between hosts in both directions, and all of them at a barrier.
 *
 * With an argument rank 0 makes the file ARGUMENT.begin after MPI_Init, and ARGUMENT.end before
 * MPI_Finalize, and goes on when it is gone: meanwhile the network can be made another one.
 *
 * RUN np=4 cflags="-DSCHEDULE_CLOCK=CLOCK_REALTIME"
 * EXPECT late_sender at=@within ranks=1 severity=0.150 instances=5 cause_rank=0 cause_line=@near
 * EXPECT late_sender at=@forth ranks=2 severity=0.300 instances=5 cause_rank=0 cause_line=@far
 * EXPECT late_sender at=@back ranks=1 severity=0.200 instances=5 cause_rank=3 cause_line=@answer
 * EXPECT wait_at_barrier at=@barrier severity=0.300 ranks=0:0.1,1:0.1,3:0.1 cause_rank=2
 * METRIC late_sender 0.650
 */
#include "../common.h"

enum { ROUND = 160, LARGE = 1 << 20 };

static char large[LARGE];

static void pause_at(const char *name, const char *where)
{
    char path[4096];
    FILE *file;
    snprintf(path, sizeof path, "%s.%s", name, where);
    file = fopen(path, "w");
    REQUIRE(file != NULL);
    fclose(file);
    while (access(path, F_OK) == 0)
        usleep(2000);
}

/* One MiB to the other host, four to the neighbour. */
static void transfer(void)
{
    if (rank == 0)
        MPI_Send(large, LARGE, MPI_CHAR, 2, 1, WORLD);
    else if (rank == 2)
        MPI_Recv(large, LARGE, MPI_CHAR, 0, 1, WORLD, MPI_STATUS_IGNORE);
    for (int part = 0; part < 4; part++) {
        if (rank == 2)
            MPI_Send(large, LARGE, MPI_CHAR, 3, 2, WORLD);
        else if (rank == 3)
            MPI_Recv(large, LARGE, MPI_CHAR, 2, 2, WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    long sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    if (rank == 0 && argc > 1)
        pause_at(argv[1], "begin");
    start_clock();
    transfer();
    at_ms(ROUND);
    for (int round = 1; round <= REPEATS; round++) {
        int value = -1;
        double begin = round * ROUND;
        if (rank == 0) {
            at_ms(begin + 30);
            MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD); /* MARK near */
            at_ms(begin + 60);
            MPI_Send(&round, 1, MPI_INT, 2, 0, WORLD); /* MARK far */
        } else if (rank == 1) {
            at_ms(begin);
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK within */
            at_ms(begin + 50);
            MPI_Recv(&value, 1, MPI_INT, 3, 0, WORLD, MPI_STATUS_IGNORE); /* MARK back */
        } else if (rank == 2) {
            at_ms(begin);
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK forth */
        } else if (rank == 3) {
            at_ms(begin + 90);
            MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD); /* MARK answer */
        }
        at_ms(begin + (rank == 2 ? 130 : 110));
        MPI_Barrier(WORLD); /* MARK barrier */
        REQUIRE(rank == 0 || rank > 2 || value == round);
        sum += value;
    }
    at_ms((REPEATS + 1) * ROUND);
    if (rank == 0 && argc > 1)
        pause_at(argv[1], "end");
    result(sum);
    MPI_Finalize();
    return 0;
}
