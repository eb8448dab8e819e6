/* The library of two_runtimes.c. */
#include <omp.h>
#include <time.h>

void late_in(double begin, double late, long *sum)
{
    long own = 0;
#pragma omp parallel num_threads(2) reduction(+ : own) /* MARK region */
    {
        double until = begin + omp_get_thread_num() * late;
        struct timespec t = {(time_t)until, (long)((until - (time_t)until) * 1e9)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0) {
        }
        own += omp_get_thread_num();
    }
    *sum += own;
}
