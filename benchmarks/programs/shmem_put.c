/* A put of eight bytes into the own memory: next to no work in the library. */
#define CALLS 1
#define SHMEM
#include "micro.h"

static long target, source = 1;

static void set_up(void) {}

static __attribute__((noinline)) void step(void) {
    shmem_putmem(&target, &source, sizeof target, 0);
}
