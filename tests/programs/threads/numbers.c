/* The last one of four threads is late in each round: of an OpenMP team, and then of four that the program starts, one
 * of which is the first thread. Who comes to a barrier first differs from round to round.
 *
 * Built with -pthread -fopenmp, run with one rank.
 */
#include "../common.h"
#include <omp.h>
#include <pthread.h>

enum { BEGIN = 10, LATE = BEGIN + DELAY, THREADS = 4 };
static pthread_barrier_t all;

static void pass(int round, long number)
{
    at(round, number == THREADS - 1 ? LATE : BEGIN + 0.3 * ((round + number) % (THREADS - 1)));
}

static void *meet(void *number)
{
    for (int round = REPEATS; round < 2 * REPEATS; round++) {
        pass(round, (long)number);
        pthread_barrier_wait(&all); /* MARK meet */
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    start_clock();
    REQUIRE(provided >= MPI_THREAD_FUNNELED);
    REQUIRE(pthread_barrier_init(&all, NULL, THREADS) == 0);
#pragma omp parallel num_threads(THREADS)
    for (int round = 0; round < REPEATS; round++) {
        pass(round, omp_get_thread_num());
#pragma omp barrier /* MARK team */
    }
    for (long number = 1; number < THREADS; number++)
        REQUIRE(pthread_create(&threads[number], NULL, meet, (void *)number) == 0);
    meet(NULL);
    for (long number = 1; number < THREADS; number++)
        REQUIRE(pthread_join(threads[number], NULL) == 0);
    finish(2 * REPEATS, 0);
}
