/* Rank 1 waits in loops of its own for flags in its own memory of windows, of which it tells: in
 * memory that it gave or was given, and that it attached. It leaves each loop late: meanwhile ranks
 * write beside the flag, and another one tries to set it by a compare-and-swap, in vain. The last
 * one is set by a compare-and-swap, which nobody knows to have succeeded.
 */
#include "../common.h"

#include "laggard.h"

enum { GIVEN, ALLOCATED, ATTACHED, SWAPPED, KINDS };
/* Displacements count in ints in one of the windows, and in longs in another. */
enum { FLAG = 2, BESIDE = 3, PLACES = 8 };

static const char *const names[KINDS] = {"given", "allocated", "attached", "swapped"};
static MPI_Win windows[KINDS];
static volatile long *memory[KINDS];
static MPI_Aint places[KINDS][2];

static void make_windows(void)
{
    static long given[PLACES], attached[PLACES];
    MPI_Aint at[2] = {FLAG * sizeof(long) / sizeof(int), BESIDE * sizeof(long) / sizeof(int)};
    MPI_Aint all = PLACES * sizeof(long);
    MPI_Win_create(given, all, sizeof(int), MPI_INFO_NULL, WORLD, &windows[GIVEN]);
    memcpy(places[GIVEN], at, sizeof at);
    memory[GIVEN] = given;
    for (int kind = ALLOCATED; kind <= SWAPPED; kind += SWAPPED - ALLOCATED) {
        long *own;
        MPI_Win_allocate(all, sizeof(long), MPI_INFO_NULL, WORLD, &own, &windows[kind]);
        memset(own, 0, all);
        places[kind][0] = FLAG;
        places[kind][1] = BESIDE;
        memory[kind] = own;
    }
    MPI_Win_create_dynamic(MPI_INFO_NULL, WORLD, &windows[ATTACHED]);
    MPI_Win_attach(windows[ATTACHED], attached, all);
    MPI_Get_address(&attached[FLAG], &at[0]);
    MPI_Get_address(&attached[BESIDE], &at[1]);
    MPI_Bcast(at, 2, MPI_AINT, 1, WORLD);
    memcpy(places[ATTACHED], at, sizeof at);
    memory[ATTACHED] = attached;
    MPI_Barrier(WORLD);
}

/* Lets the library go on with what others do to this rank's memory. */
static void serve(void)
{
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &found, MPI_STATUS_IGNORE);
}

NOINLINE static void wait_for(int kind, long value)
{
    laggard_wait_begin(names[kind], &memory[kind][FLAG]); /* MARK wait */
    while (memory[kind][FLAG] < value) {
        usleep(200);
        serve();
        MPI_Win_sync(windows[kind]);
    }
    pass_ms(30);
    laggard_region_end(names[kind]);
}

/* Sets the flag if it is `expected`; whether it was. */
static int swap(int kind, long expected, long value)
{
    long found = -1;
    MPI_Compare_and_swap(&value, &expected, &found, MPI_LONG, 1, places[kind][0], windows[kind]); /* MARK swap */
    MPI_Win_flush(1, windows[kind]);
    return found == expected;
}

static void step(int round, int kind)
{
    int at_step = KINDS * round + kind;
    long value = round + 1;
    MPI_Win window = windows[kind];
    at(at_step, rank == 0 ? 50 : rank == 2 ? 60 : rank == 3 ? 65 : 0);
    if (rank == 1) {
        wait_for(kind, value);
    } else if (rank == 0 && kind == SWAPPED) {
        REQUIRE(swap(kind, value - 1, value));
    } else if (rank == 0) {
        MPI_Put(&value, 1, MPI_LONG, 1, places[kind][0], 1, MPI_LONG, window); /* MARK put */
        MPI_Win_flush(1, window);
    } else if (rank == 2 && kind != SWAPPED) {
        REQUIRE(!swap(kind, -7, value + 100));
    } else if (rank == 3) {
        MPI_Put(&value, 1, MPI_LONG, 1, places[kind][1], 1, MPI_LONG, window);
        MPI_Win_flush(1, window);
    }
}

int main(int argc, char **argv)
{
    /* What Open MPI 4.1.4 has in its place on one host breaks off in a compare-and-swap. */
    setenv("OMPI_MCA_osc", "pt2pt", 1);
    start(&argc, &argv);
    make_windows();
    for (int kind = 0; kind < KINDS; kind++)
        MPI_Win_lock_all(0, windows[kind]);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
        for (int kind = 0; kind < KINDS; kind++)
            step(round, kind);
    }
    at(KINDS * REPEATS, 0);
    for (int kind = 0; kind < KINDS; kind++) {
        MPI_Win_unlock_all(windows[kind]);
        MPI_Win_free(&windows[kind]);
    }
    finish(KINDS * REPEATS + 1, rank);
}
