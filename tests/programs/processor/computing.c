/* A library in which odd_sampled.c computes, and which it unloads. */
#include <time.h>

static volatile double sum;

static double processor(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * t.tv_sec + 1e-6 * t.tv_nsec;
}

double compute_for(double ms)
{
    for (double until = processor() + ms; processor() < until;)
        for (int n = 0; n < 1000; n++)
            sum = sum * 0.999 + 1;
    return sum;
}
