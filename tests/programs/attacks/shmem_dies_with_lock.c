/* PE 0 takes a lock and is killed while PE 1 waits for it. */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static long lock, ready;

int main(void)
{
    shmem_init();
    int pe = shmem_my_pe();
    shmem_barrier_all();
    if (pe == 0) {
        shmem_set_lock(&lock);
        shmem_long_p(&ready, 1, 1);
        shmem_quiet();
        usleep(300000);
        raise(SIGKILL);
    }
    shmem_long_wait_until(&ready, SHMEM_CMP_EQ, 1);
    shmem_set_lock(&lock);
    shmem_clear_lock(&lock);
    shmem_finalize();
    return 0;
}
