/* Two ranks take turns with a mutex in memory that they share: rank 1 has it for DELAY ms while rank 0 waits. Nobody
 * knows who of another process has it.
 *
 * Built with -pthread, run with two ranks.
 */
#include "../common.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

enum { TAKEN = 10, WANTED = 20 };

static pthread_mutex_t *share(void)
{
    char name[64];
    snprintf(name, sizeof name, "shared-lock-%d", (int)getppid());
    int file = open(name, O_RDWR | O_CREAT, 0600);
    REQUIRE(file >= 0 && ftruncate(file, sizeof(pthread_mutex_t)) == 0);
    void *shared = mmap(NULL, sizeof(pthread_mutex_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    REQUIRE(shared != MAP_FAILED);
    close(file);
    MPI_Barrier(WORLD);
    unlink(name);
    return shared;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    pthread_mutex_t *mutex = share();
    if (rank == 0) {
        pthread_mutexattr_t shared;
        pthread_mutexattr_init(&shared);
        pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
        pthread_mutex_init(mutex, &shared);
    }
    MPI_Barrier(WORLD);
    for (int round = 0; round < REPEATS; round++) {
        at(round, rank == 1 ? TAKEN : WANTED);
        pthread_mutex_lock(mutex); /* MARK lock */
        if (rank == 1)
            at(round, WANTED + DELAY);
        pthread_mutex_unlock(mutex);
    }
    MPI_Barrier(WORLD);
    finish(REPEATS, 0);
}
