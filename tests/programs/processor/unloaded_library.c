/* The library that is unloaded. */
#include <time.h>

static volatile double sum;

static double processor(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}

/* For so long, ns; returns how long it was. */
double compute(double ns)
{
    double begin = processor();
    while (processor() < begin + ns)
        for (int n = 0; n < 100000; n++)
            sum = sum * 0.999 + 1;
    return processor() - begin;
}
