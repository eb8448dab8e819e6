/* A get of one element from the own memory. */
#define CALLS 1
#define SHMEM
#include "micro.h"

static long target = 1;
static volatile long source;

static void set_up(void) {}

static __attribute__((noinline)) void step(void) {
    source = shmem_long_g(&target, 0);
}
