/* A pipe that is full: every write of a block waits until the reader, a thread of its own that calls no
 * MPI, has taken one. It takes PARTS blocks in each round, the last one after DELAY ms. */
#ifndef LAGGARD_TEST_FULL_PIPE_H
#define LAGGARD_TEST_FULL_PIPE_H

#include <fcntl.h>
#include <pthread.h>

enum { PARTS = 3 };

/* A page, which the kernel keeps as one. */
static char block[4096];

struct full_pipe {
    int from, to;
    pthread_t reader;
};

HELPER void fill(struct full_pipe *made)
{
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    made->from = ends[0];
    made->to = ends[1];
    REQUIRE(fcntl(made->to, F_SETFL, O_NONBLOCK) == 0);
    while (write(made->to, block, sizeof block) == sizeof block) {
    }
    REQUIRE(fcntl(made->to, F_SETFL, 0) == 0);
}

HELPER void *drain(void *pointer)
{
    static char taken[sizeof block];
    struct full_pipe *made = pointer;
    for (int round = 0; round < REPEATS; round++)
        for (int part = 1; part <= PARTS; part++) {
            at(round, DELAY * part / (double)PARTS);
            REQUIRE(read(made->from, taken, sizeof taken) == sizeof taken);
        }
    return NULL;
}

HELPER void drain_slowly(struct full_pipe *made)
{
    REQUIRE(pthread_create(&made->reader, NULL, drain, made) == 0);
}

HELPER void end(struct full_pipe *made)
{
    REQUIRE(pthread_join(made->reader, NULL) == 0);
    close(made->from);
    close(made->to);
}

#endif
