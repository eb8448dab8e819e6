/* Parallel regions with BARRIERS barriers each. The runtime is runtime.c. */
#define BARRIERS 30
#define CALLS (BARRIERS + 2)
#include "micro.h"

void GOMP_parallel(void (*function)(void *), void *data, unsigned threads, unsigned flags);
void GOMP_barrier(void);

static volatile long sum;

static void set_up(void) {}

static void region(void *data) {
    (void)data;
    for (int n = 0; n < BARRIERS; n++) {
        GOMP_barrier();
        sum++;
    }
}

static __attribute__((noinline)) void step(void) {
    GOMP_parallel(region, NULL, 2, 0);
    __asm__ volatile("" ::: "memory");
}
