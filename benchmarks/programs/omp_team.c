/* The same with two threads, which wait for each other. */
#define THREADS 2
#include "omp_barrier.c"
