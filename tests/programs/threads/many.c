/* Regions in regions, deeper than are recorded, and more threads that wait for a mutex than are recorded. The result
 * is that of the program without a recorder.
 *
 * Built with -fopenmp, run on one rank.
 */
#include <mpi.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { DEEP = 11, MANY = 300 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int entered, taken;
static atomic_int wanted;

static void deeper(int left)
{
#pragma omp parallel num_threads(2)
    {
#pragma omp atomic
        entered++;
        if (omp_get_thread_num() == 0 && left > 1)
            deeper(left - 1);
    }
}

static void *take(void *unused)
{
    wanted++;
    pthread_mutex_lock(&mutex);
    taken++;
    pthread_mutex_unlock(&mutex);
    return unused;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t threads[MANY];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    omp_set_max_active_levels(DEEP);
    deeper(DEEP);
    pthread_mutex_lock(&mutex);
    for (int at = 0; at < MANY; at++)
        pthread_create(&threads[at], NULL, take, NULL);
    while (wanted < MANY)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    pthread_mutex_unlock(&mutex);
    for (int at = 0; at < MANY; at++)
        pthread_join(threads[at], NULL);
    printf("%d entered, %d taken\n", entered, taken);
    MPI_Finalize();
}
