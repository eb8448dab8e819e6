/* Barriers of the program's own, on counters in a window of shared memory. In each of 5 rounds: a
 * function in which all ranks meet, rank 3 late; a region in which ranks 1 and 2 meet, rank 1 late,
 * with calls of MPI in it; one in which ranks meet in pairs, each at a time of its own, which looks
 * like one of all; and a function that all reach together. Whoever comes last leaves at once.
 */
#include "../common.h"

#include "laggard.h"

enum { ALL, SOME, FIRST, SECOND, TOGETHER, COUNTERS };

static MPI_Win window;
static int *counters, passed[COUNTERS];

__attribute__((no_instrument_function)) static void pass(int counter, int members)
{
    int wanted = members * ++passed[counter];
    if (__atomic_add_fetch(&counters[counter], 1, __ATOMIC_SEQ_CST) == wanted)
        return;
    while (__atomic_load_n(&counters[counter], __ATOMIC_SEQ_CST) < wanted)
        usleep(100);
}

__attribute__((no_instrument_function)) static void pass_by_calls(int counter, int members)
{
    int one = 1, found = 0, wanted = members * ++passed[counter];
    MPI_Fetch_and_op(&one, &found, MPI_INT, 0, counter, MPI_SUM, window);
    MPI_Win_flush(0, window);
    for (found++; found < wanted; MPI_Win_flush(0, window)) {
        usleep(100);
        MPI_Fetch_and_op(NULL, &found, MPI_INT, 0, counter, MPI_NO_OP, window);
    }
}

NOINLINE void meet(void)
{
    pass(ALL, 4);
    __asm__ volatile("" ::: "memory");
}

NOINLINE void meet_together(void)
{
    pass(TOGETHER, 4);
    __asm__ volatile("" ::: "memory");
}

static void meet_one(const char *name, int counter)
{
    laggard_region_begin(name); /* MARK region */
    if (counter == SOME)
        pass_by_calls(counter, 2);
    else
        pass(counter, 2);
    laggard_region_end(name);
}

int main(int argc, char **argv)
{
    MPI_Aint bytes = COUNTERS * sizeof(int);
    int unit = sizeof(int);
    start(&argc, &argv);
    MPI_Win_allocate_shared(rank == 0 ? bytes : 0, unit, MPI_INFO_NULL, WORLD, &counters, &window);
    MPI_Win_shared_query(window, 0, &bytes, &unit, &counters);
    if (rank == 0)
        memset(counters, 0, bytes);
    MPI_Barrier(WORLD);
    MPI_Win_lock_all(0, window);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
        at(2 * round, rank == 3 ? 60 : 0);
        meet(); /* MARK meet */
        at(2 * round, rank == 1 ? 120 : 80);
        if (rank == 1 || rank == 2)
            meet_one("meet_some", SOME);
        if (rank == 0)
            at_serving(2 * round, 130);
        at(2 * round, rank == 0 ? 130 : rank == 1 ? 140 : rank == 2 ? 150 : 165);
        meet_one("meet_in_pairs", rank < 2 ? FIRST : SECOND);
        at(2 * round, 180);
        meet_together(); /* MARK together */
    }
    at(2 * REPEATS, 0);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    finish(2 * REPEATS + 1, rank);
}
