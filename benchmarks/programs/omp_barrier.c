/* Parallel regions of one thread with BARRIERS barriers each, by a runtime with a tools interface (OMPT): nobody waits,
 * and the runtime tells its tools of all of it. */
#define BARRIERS 30
#define CALLS (BARRIERS + 2)
#include "micro.h"

static volatile long sum;

static void set_up(void) {}

static __attribute__((noinline)) void step(void) {
#pragma omp parallel num_threads(1)
    for (int n = 0; n < BARRIERS; n++) {
#pragma omp barrier
        sum++;
    }
    __asm__ volatile("" ::: "memory");
}
