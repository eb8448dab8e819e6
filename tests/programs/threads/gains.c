/* What mending a thread of the first rank gains, in one of three cases: it is late at the end of a region
 * (`late`), keeps a lock for long (`lock`), or executes a long task (`task`). With the word `mended` it does not.
 * The second rank waits for the first one in each round. In two more cases all ranks are alike: their first threads are
 * late at the end of a region (`first`), or what another one computes alone is awaited (`signal`).
 *
 * Built with -fopenmp, run with four threads of two ranks, the case, and `mended` or another word.
 */
#include "../common.h"
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>

enum { ROUNDS = 6, LONG = 50, SHORT = 15, WANTED = 5 };
static omp_lock_t lock;
static sem_t done;
static long sums[4];

static NOINLINE void late(int flawed)
{
    static const int usual[] = {10, SHORT, 20, 15};
#pragma omp parallel
    {
        int own = omp_get_thread_num();
        pass_ms(own == flawed ? LONG : usual[own]);
        sums[own]++;
    }
}

static NOINLINE void locked(int is_flawed)
{
#pragma omp parallel
    {
        int own = omp_get_thread_num();
        if (own == 1) {
            omp_set_lock(&lock);
            pass_ms(is_flawed ? LONG : 0);
            omp_unset_lock(&lock);
        } else if (own == 0) {
            pass_ms(WANTED);
            omp_set_lock(&lock);
            pass_ms(WANTED);
            omp_unset_lock(&lock);
        }
        sums[own]++;
    }
}

static NOINLINE void tasks(int is_flawed)
{
#pragma omp parallel num_threads(2)
#pragma omp master
    {
#pragma omp task
        {
            pass_ms(is_flawed ? LONG : SHORT);
            sums[0]++;
        }
        pass_ms(SHORT);
#pragma omp taskwait
        sums[1]++;
    }
}

static void *produce(void *is_flawed)
{
    for (int round = 0; round < ROUNDS; round++) {
        if (is_flawed)
            pass_ms(LONG);
        sem_post(&done);
    }
    return NULL;
}

/* The first thread does so, too. */
static NOINLINE void consume(void)
{
    sem_wait(&done);
    pass_ms(1);
    sums[0]++;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    REQUIRE(argc == 3 && omp_get_max_threads() == 4);
    int is_flawed = strcmp(argv[2], "mended") != 0;
    omp_init_lock(&lock);
    sem_init(&done, 0, 0);
    start_clock();
    pthread_t producer;
    if (strcmp(argv[1], "signal") == 0)
        pthread_create(&producer, NULL, produce, is_flawed ? argv : NULL);
    double begin = MPI_Wtime();
    for (int round = 0; round < ROUNDS; round++) {
        if (strcmp(argv[1], "first") == 0)
            late(is_flawed ? 0 : -1);
        else if (strcmp(argv[1], "signal") == 0)
            consume();
        else if (rank == 0 && strcmp(argv[1], "late") == 0)
            late(is_flawed ? 1 : -1);
        else if (rank == 0 && strcmp(argv[1], "lock") == 0)
            locked(is_flawed);
        else if (rank == 0)
            tasks(is_flawed);
        MPI_Barrier(WORLD);
    }
    if (rank == 0)
        printf("elapsed %.6f\n", MPI_Wtime() - begin);
    if (strcmp(argv[1], "signal") == 0)
        pthread_join(producer, NULL);
    result(sums[0] + sums[1] + sums[2] + sums[3]);
    MPI_Finalize();
}
