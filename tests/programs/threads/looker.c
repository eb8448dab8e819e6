/* The first thread waits for the end of one that computes. After that, another one looks at a variable until it is told
 * to end, while the first thread sleeps: nobody waits for that one. Then it waits for one more that computes.
 *
 * Built with -pthread, run with one rank.
 */
#include "../common.h"
#include <pthread.h>
#include <stdatomic.h>

static atomic_int is_over;

static void *compute(void *unused)
{
    struct timespec had = {0};
    while (had.tv_sec == 0 && had.tv_nsec < 1000000L * DELAY)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &had);
    return unused;
}

static void *look(void *unused)
{
    while (!is_over)
        ;
    return unused;
}

static void wait_for_work(void)
{
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, compute, NULL) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    MPI_Init(&argc, &argv);
    start_clock();
    wait_for_work();
    REQUIRE(pthread_create(&thread, NULL, look, NULL) == 0);
    pass_ms(4 * DELAY);
    is_over = 1;
    REQUIRE(pthread_join(thread, NULL) == 0);
    wait_for_work();
    finish(1, 0);
}
