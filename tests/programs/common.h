/* Shared by the C and C++ test programs: one clock for all ranks, delays on a
 * schedule, and checked results.
 *
 * All ranks of a test run on one machine, so CLOCK_MONOTONIC is the same clock for
 * all of them (where a host of a test shifts it, CLOCK_REALTIME is, which cannot be
 * shifted). start() agrees on an origin; after that every step of a program
 * happens at a fixed time after it. No synchronising call is needed between the
 * delays, none of them adds up errors, and the expected waiting times are exact
 * but for the wake-up of a process.
 */
#ifndef LAGGARD_TEST_COMMON_H
#define LAGGARD_TEST_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef SCHEDULE_CLOCK
#define SCHEDULE_CLOCK CLOCK_MONOTONIC
#endif
#define WORLD MPI_COMM_WORLD
#define HELPER __attribute__((unused)) static
#define NOINLINE __attribute__((noinline))

/* The usual schedule: REPEATS rounds of PERIOD ms, in which somebody is DELAY ms late. */
#ifndef TEST_REPEATS
#define TEST_REPEATS 5
#endif
enum { REPEATS = TEST_REPEATS, PERIOD = 100, DELAY = 60 };

static int rank, size;
static double origin;

/* How many times as long as they are written all delays are: where a machine disturbs a run, it is
 * repeated with longer ones. */
static double schedule_scale = 1;

__attribute__((constructor, no_instrument_function)) static void take_scale(void)
{
    const char *text = getenv("SCHEDULE_SCALE");
    if (text != NULL)
        schedule_scale = atof(text);
}

HELPER double now(void)
{
    struct timespec t;
    clock_gettime(SCHEDULE_CLOCK, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Sleeps until `ms` milliseconds after the origin. */
HELPER void at_ms(double ms)
{
    double until = origin + 1e-3 * schedule_scale * ms;
    struct timespec t;
    t.tv_sec = (time_t)until;
    t.tv_nsec = (long)((until - t.tv_sec) * 1e9);
    while (clock_nanosleep(SCHEDULE_CLOCK, TIMER_ABSTIME, &t, NULL) != 0) {
    }
}

/* Sleeps for `ms` milliseconds. */
__attribute__((unused, no_instrument_function)) static void pass_ms(double ms)
{
    double left = 1e-3 * schedule_scale * ms;
    struct timespec t = {(time_t)left, (long)((left - (time_t)left) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) != 0) {
    }
}

/* Sleeps until `ms` milliseconds after the start of round `round`. */
HELPER void at(int round, double ms) { at_ms(round * PERIOD + ms); }

/* The same, and goes on meanwhile with what others do to this rank's memory: MPICH does it in
 * calls only. */
HELPER void at_serving(int round, int ms)
{
    struct timespec step = {.tv_nsec = 500000};
    double until = origin + 1e-3 * schedule_scale * (round * PERIOD + ms);
    for (int found; now() < until; nanosleep(&step, NULL))
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &found, MPI_STATUS_IGNORE);
}

/* Ends the program, not only the rank, when a result is wrong. */
#define REQUIRE(condition)                                                                    \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "rank %d: %s:%d: wrong: %s\n", rank, __FILE__, __LINE__, #condition); \
            MPI_Abort(WORLD, 3);                                                              \
        }                                                                                     \
    } while (0)

/* What a result depends on and the schedule alone does not promise: another rank goes on when this
 * one has come here. They tell each other by files, which no pattern is about; the ranks of a run have one
 * parent. */
enum { MOST_RANKS = 16 };

HELPER const char *file_of(int from, int to, int number)
{
    static char name[64];
    snprintf(name, sizeof name, "go-on-%d-%d-%d-%d", (int)getppid(), from, to, number);
    return name;
}

HELPER void let_go_on(int other)
{
    static int times[MOST_RANKS];
    FILE *file = fopen(file_of(rank, other, times[other]++), "w");
    REQUIRE(file != NULL && fclose(file) == 0);
}

HELPER void go_on_after(int other)
{
    static int times[MOST_RANKS];
    const char *name = file_of(other, rank, times[other]++);
    while (unlink(name) != 0)
        usleep(200);
}

/* Agrees on the origin of the schedule. */
HELPER void start_clock(void)
{
    double mine, latest;
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    mine = now();
    MPI_Allreduce(&mine, &latest, 1, MPI_DOUBLE, MPI_MAX, WORLD);
    origin = latest + 0.02;
}

HELPER void start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    start_clock();
}

/* Prints the line that must not change under the collector. */
HELPER void result(long checksum) { printf("rank %d of %d checksum %ld\n", rank, size, checksum); }

/* Ends at the same time on all ranks, so that nobody waits in MPI_Finalize. */
HELPER void finish(int rounds, long checksum)
{
    at(rounds, 0);
    result(checksum);
    MPI_Finalize();
}

#endif
