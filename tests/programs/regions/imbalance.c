/* Regions of a program, one of which takes a LATE rank 60 ms longer in each of 5 rounds. `solve` is
 * a call in all of them, and where it is late the others wait in `step`, which has a barrier:
 * that is no time of the region. `output` takes all ranks the same. With KILLED, all ranks are
 * killed at their end.
 */
#include "../common.h"
#include <signal.h>
#include "laggard.h"

#ifndef LATE
#define LATE 2
#endif

NOINLINE static void meet(void)
{
    MPI_Barrier(WORLD); /* MARK barrier */
}

NOINLINE static void step(int round)
{
    laggard_region_begin("step"); /* MARK step */
    laggard_region_begin("solve"); /* MARK solve */
    at(round, rank == LATE ? 80 : 20);
    laggard_region_end("solve");
    meet();
    laggard_region_end("step");
}

NOINLINE static void output(int round)
{
    laggard_region_begin("output");
    at(round, 95);
    laggard_region_end("output");
}

int main(int argc, char **argv)
{
    laggard_region_begin("before MPI");
    start(&argc, &argv);
    laggard_region_end("before MPI");
    at(0, 0);
    laggard_phase("time loop");
    for (int round = 0; round < REPEATS; round++) {
        at(round, 0);
        step(round);
        output(round);
    }
    MPI_Pcontrol(7);
    at(REPEATS, 0);
    laggard_pause();
    laggard_region_begin("paused");
    at(REPEATS, 20);
    laggard_region_end("paused");
#ifdef KILLED
    MPI_Barrier(WORLD); /* the first to die takes the others along */
#endif
    laggard_resume();
#ifdef KILLED
    raise(SIGKILL);
#endif
    finish(REPEATS + 1, rank);
    return 0;
}
