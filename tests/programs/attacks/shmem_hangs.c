/* PE 1 waits for a flag that nobody sets. The others go on for a while; then PE 0 ends them all. */
#include <shmem.h>
#include <unistd.h>

static long never;
static int told;

__attribute__((noinline)) static void wait_for_nobody(void)
{
    shmem_int_p(&told, 1, 0);
    shmem_int_p(&told, 1, 2);
    shmem_long_wait_until(&never, SHMEM_CMP_NE, 0);
}

int main(void)
{
    shmem_init();
    int pe = shmem_my_pe();
    shmem_barrier_all();
    if (pe == 1)
        wait_for_nobody();
    if (pe != 1)
        shmem_int_wait_until(&told, SHMEM_CMP_EQ, 1);
    for (int i = 0; pe != 1 && i < 10; i++) {
        shmem_quiet();
        usleep(60000);
    }
    if (pe == 0)
        shmem_global_exit(3);
    shmem_finalize();
    return 0;
}
