/* Empty parallel regions, each with its begin and its end. The runtime is runtime.c, or GCC's, with as many threads as
 * TEAM says. */
#define CALLS 2
#ifndef TEAM
#define TEAM 2
#endif
#include "micro.h"

void GOMP_parallel(void (*function)(void *), void *data, unsigned threads, unsigned flags);

static volatile long sum;

static void set_up(void) {}

static void region(void *data) {
    (void)data;
    sum++;
}

static __attribute__((noinline)) void step(void) {
    GOMP_parallel(region, NULL, TEAM, 0);
    __asm__ volatile("" ::: "memory");
}
