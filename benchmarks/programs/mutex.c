/* A mutex that is free is taken and given back: no record. */
#define CALLS 1
#include "micro.h"
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile long sum;

static void set_up(void) {}

static __attribute__((noinline)) void step(void) {
    pthread_mutex_lock(&mutex);
    sum++;
    pthread_mutex_unlock(&mutex);
}
