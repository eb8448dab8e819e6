/* Flaws that are mended on request. Ranks print how long the rounds took, which does not include
 * the start of MPI.
 *
 *     repairs CASE flawed|mended
 *
 * Work is sleeping, so that no case needs more cores than there are.
 */
#include "../common.h"

enum { ROUNDS = 8, MESSAGES = 40000 };

static int flawed;

/* Is one of two values. */
HELPER double either(double if_flawed, double if_mended) { return flawed ? if_flawed : if_mended; }

static NOINLINE void work(double ms) { pass_ms(ms); }

static NOINLINE void meet(void) { MPI_Barrier(WORLD); }

static NOINLINE void sum_up(void)
{
    long mine = rank, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, WORLD);
    REQUIRE(sum == (long)size * (size - 1) / 2);
}

HELPER void send_to(int other) { MPI_Send(&rank, 1, MPI_INT, other, 0, WORLD); }

HELPER void receive_from(int other)
{
    int value = -1;
    MPI_Recv(&value, 1, MPI_INT, other, 0, WORLD, MPI_STATUS_IGNORE);
    REQUIRE(value == other);
}

/* Rank 3 has four times the work. */
static void slow_rank(int round)
{
    (void)round;
    work(rank == 3 ? either(16, 4) : 4);
    sum_up();
}

/* Rank 2 is nearly as late as rank 3, which alone is mended. */
static void two_slow_ranks(int round)
{
    (void)round;
    work(rank == 3 ? either(16, 4) : rank == 2 ? 12 : 4);
    sum_up();
}

/* Each waits for the one before, and all for rank 0, which becomes twice as fast. */
static void chain(int round)
{
    (void)round;
    if (rank == 0)
        work(either(14, 7));
    else
        receive_from(rank - 1);
    if (rank + 1 < size)
        send_to(rank + 1);
    if (rank > 0)
        work(3);
}

/* Rank 1 is late for its neighbours on a ring, and these for theirs. */
static void neighbours(int round)
{
    MPI_Request requests[4];
    int from[2] = {-1, -1}, left = (rank + size - 1) % size, right = (rank + 1) % size;
    (void)round;
    work(rank == 1 ? either(12, 4) : 4);
    MPI_Irecv(&from[0], 1, MPI_INT, left, 1, WORLD, &requests[0]);
    MPI_Irecv(&from[1], 1, MPI_INT, right, 2, WORLD, &requests[1]);
    MPI_Isend(&rank, 1, MPI_INT, left, 2, WORLD, &requests[2]);
    MPI_Isend(&rank, 1, MPI_INT, right, 1, WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    REQUIRE(from[0] == left && from[1] == right);
}

/* The work grows with the rank; mended, all have the mean. */
static void uneven(int round)
{
    (void)round;
    work(either(2 + 4 * rank, 8));
    sum_up();
}

/* In each round another rank has more work, and all meet. */
static void barriers(int round)
{
    work(rank == round % size ? 12 : 2);
    if (flawed)
        meet();
}

static NOINLINE void solve(double ms) { work(ms); MPI_Barrier(WORLD); }

static NOINLINE void assemble(double ms) { work(ms); MPI_Barrier(WORLD); }

/* A function becomes twice as fast. */
static void slow_function(int round)
{
    (void)round;
    solve((10 + rank) * either(1, 0.5));
    assemble(5);
}

/* One rank becomes twice as fast; then others are the last. */
static void slow_machine(int round)
{
    (void)round;
    work(rank == 1 ? either(16, 8) : 10);
    sum_up();
}

/* Rank 0 prepares what all need; mended, three times as fast. */
static void late_root(int round)
{
    int value = round;
    if (rank == 0)
        work(either(12, 4));
    MPI_Bcast(&value, 1, MPI_INT, 0, WORLD); /* MARK root */
    REQUIRE(value == round);
    work(5);
    sum_up();
}

/* What is computed after a receive does not need its message. */
static void blocking_receive(int round)
{
    int value = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) {
        work(10);
        send_to(1);
    } else if (rank == 1) {
        if (flawed)
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Irecv(&value, 1, MPI_INT, 0, 0, WORLD, &request);
        work(7);
        if (!flawed)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        REQUIRE(value == 0);
    }
    (void)round;
    meet();
}

/* What is computed after a synchronous send leaves the buffer as it is. */
static void blocking_send(int round)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) {
        if (flawed)
            MPI_Ssend(&rank, 1, MPI_INT, 1, 0, WORLD);
        else
            MPI_Issend(&rank, 1, MPI_INT, 1, 0, WORLD, &request);
        work(7);
        if (!flawed)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        work(10);
        receive_from(0);
    }
    (void)round;
    meet();
}

/* A communicator is made in each round, or in the first one. */
static void made_again(int round)
{
    MPI_Comm own;
    work(rank == round % size ? 12 : 2);
    if (flawed || round == 0) {
        MPI_Comm_dup(WORLD, &own);
        MPI_Comm_free(&own);
    }
}

/* An array is sent element by element, or as a whole. */
static void small_messages(int round)
{
    static double data[MESSAGES];
    int each = flawed ? 1 : MESSAGES;
    for (int at = 0; at < MESSAGES && rank < 2; at += each) {
        if (rank == 0)
            MPI_Send(data + at, each, MPI_DOUBLE, 1, 0, WORLD);
        else
            MPI_Recv(data + at, each, MPI_DOUBLE, 0, 0, WORLD, MPI_STATUS_IGNORE);
    }
    (void)round;
    work(2);
}

/* Two flaws are mended at once: the work is balanced, and a barrier left out. */
static void two_flaws(int round)
{
    work(either(3 + 4 * rank, 9));
    sum_up();
    work(rank == round % size ? 10 : 2);
    if (flawed)
        meet();
}

static const struct {
    const char *name;
    void (*round)(int round);
} CASES[] = {
    {"slow_rank", slow_rank},
    {"two_slow_ranks", two_slow_ranks},
    {"chain", chain},
    {"neighbours", neighbours},
    {"uneven", uneven},
    {"barriers", barriers},
    {"slow_function", slow_function},
    {"slow_machine", slow_machine},
    {"late_root", late_root},
    {"blocking_receive", blocking_receive},
    {"blocking_send", blocking_send},
    {"made_again", made_again},
    {"small_messages", small_messages},
    {"two_flaws", two_flaws},
};

int main(int argc, char **argv)
{
    REQUIRE(argc > 2);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    flawed = strcmp(argv[2], "flawed") == 0;
    for (size_t at = 0; at < sizeof CASES / sizeof *CASES; at++) {
        if (strcmp(argv[1], CASES[at].name) != 0)
            continue;
        MPI_Barrier(WORLD);
        double began = now();
        for (int round = 0; round < ROUNDS; round++)
            CASES[at].round(round);
        MPI_Barrier(WORLD);
        if (rank == 0)
            printf("elapsed %.6f\n", now() - began);
    }
    MPI_Finalize();
    return 0;
}
