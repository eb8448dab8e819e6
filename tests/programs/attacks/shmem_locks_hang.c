/* Two PEs take two locks, each the other's first: both wait for ever, until a timer ends them. PE
 * 2 waits for what is never written. */
#include <shmem.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

static long locks[2];
static long never;

/* Ends this process after so many milliseconds; nothing of its own runs then. */
static void end_in(int ms)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec time = {.it_value = {ms / 1000, ms % 1000 * 1000000L}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &time, NULL))
        abort();
}

__attribute__((noinline)) static void take_other(int mine)
{
    shmem_set_lock(&locks[1 - mine]);
}

int main(void)
{
    shmem_init();
    int pe = shmem_my_pe();
    shmem_barrier_all();
    end_in(1500);
    if (pe < 2)
        shmem_set_lock(&locks[pe]);
    shmem_barrier_all();
    if (pe < 2)
        take_other(pe);
    else
        shmem_long_wait_until(&never, SHMEM_CMP_GE, 3);
    shmem_finalize();
    return 0;
}
