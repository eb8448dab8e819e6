/* An atomic addition to the own memory. */
#define CALLS 1
#define SHMEM
#include "micro.h"

static long target;

static void set_up(void) {}

static __attribute__((noinline)) void step(void) {
    shmem_long_atomic_add(&target, 1, 0);
}
