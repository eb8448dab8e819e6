/* Parallel regions with BARRIERS barriers each, by a runtime with a tools interface (OMPT), which tells its tools of all
 * of it. With one thread nobody waits. */
#define BARRIERS 30
#define CALLS (BARRIERS + 2)
#include "micro.h"

static void set_up(void) {}

static __attribute__((noinline)) void step(void) {
#pragma omp parallel num_threads(THREADS)
    for (int n = 0; n < BARRIERS; n++) {
#pragma omp barrier
        __asm__ volatile("" ::: "memory");
    }
    __asm__ volatile("" ::: "memory");
}
