/* Two ranks meet at a barrier, a mutex and a semaphore in memory that they share: rank 0 comes late. Nobody knows
 * of the other process, so this is no waiting of threads for each other.
 *
 * Built with -pthread, run with two ranks.
 */
#include "../common.h"
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>

enum { BEGIN = 10, LATE = 30 };
struct shared {
    pthread_barrier_t barrier;
    pthread_mutex_t mutex;
    sem_t semaphore;
    long sum;
};

static struct shared *share(void)
{
    char name[64];
    snprintf(name, sizeof name, "shared-%d", (int)getppid());
    int file = open(name, O_RDWR | O_CREAT, 0600);
    REQUIRE(file >= 0 && ftruncate(file, sizeof(struct shared)) == 0);
    int access = PROT_READ | PROT_WRITE;
    struct shared *shared = mmap(NULL, sizeof *shared, access, MAP_SHARED, file, 0);
    REQUIRE(shared != MAP_FAILED);
    close(file);
    MPI_Barrier(WORLD);
    unlink(name);
    return shared;
}

static void prepare(struct shared *shared)
{
    pthread_barrierattr_t of_barrier;
    pthread_mutexattr_t of_mutex;
    pthread_barrierattr_init(&of_barrier);
    pthread_barrierattr_setpshared(&of_barrier, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &of_barrier, 2);
    pthread_mutexattr_init(&of_mutex);
    pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &of_mutex);
    sem_init(&shared->semaphore, 1, 0);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    struct shared *shared = share();
    if (rank == 0)
        prepare(shared);
    MPI_Barrier(WORLD);
    for (int round = 0; round < REPEATS; round++) {
        at(round, BEGIN + (rank == 0 ? LATE : 0));
        pthread_barrier_wait(&shared->barrier);
        pthread_mutex_lock(&shared->mutex);
        shared->sum += rank;
        pthread_mutex_unlock(&shared->mutex);
        if (rank == 0)
            sem_post(&shared->semaphore);
        else
            while (sem_wait(&shared->semaphore) != 0) {
            }
    }
    MPI_Barrier(WORLD);
    finish(REPEATS, shared->sum);
}
