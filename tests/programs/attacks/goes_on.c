/* Works in rounds until the file that its first argument names is there; then, as the second one says, "ends", or ranks
 * wait for each other ("hangs") or for one that computes ("computes") until the first file is gone again. Of "hangs"
 * nothing ends: it is killed. In "dies", rank 1 is, by itself. In "thread", another thread does that, and the first one
 * waits for it. In "circles", such threads wait for each other in the end; in "mutexes", two of the first rank want each
 * other's. In "looks", there are no rounds: ranks look for a message that nobody sends; in "steps", they pass some time
 * between short calls. In "more", each rank starts two threads in the end, which make calls until the first file is
 * gone again. When the file of a third argument is there, the program resumes its recording by MPI_Pcontrol, and
 * removes it. */
#include "../common.h"
#include <pthread.h>
#include <signal.h>

static const char *file;

static int is_there(void) { return access(file, F_OK) == 0; }

/* What to do after a round. */
enum { GO_ON, END, RESUME };

static int told(const char *resume)
{
    if (is_there())
        return END;
    return resume != NULL && unlink(resume) == 0 ? RESUME : GO_ON;
}

NOINLINE static void turn(int round)
{
    int value = round;
    /* Rank 1 is late for the others. */
    if (rank == 1)
        pass_ms(20);
    if (rank > 0)
        MPI_Send(&value, 1, MPI_INT, 0, 1, WORLD);
    else
        for (int from = 1; from < size; from++)
            MPI_Recv(&value, 1, MPI_INT, from, 1, WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(WORLD);
}

NOINLINE static void circle(void)
{
    int value;
    MPI_Recv(&value, 1, MPI_INT, (rank + 1) % size, 7, WORLD, MPI_STATUS_IGNORE);
}

static void looks(void)
{
    int found = 0;
    while (!found && !is_there())
        MPI_Iprobe(MPI_ANY_SOURCE, 9, WORLD, &found, MPI_STATUS_IGNORE);
}

static void steps(void)
{
    while (!is_there()) {
        pass_ms(2);
        MPI_Send(&rank, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD);
    }
}

static void *rounds(void *resume)
{
    int next = GO_ON;
    for (int round = 0; next != END; round++) {
        turn(round);
        if (rank == 0)
            next = told(resume);
        MPI_Bcast(&next, 1, MPI_INT, 0, WORLD);
        if (next == RESUME)
            MPI_Pcontrol(1);
    }
    return NULL;
}

/* A thread of each rank waits for that of the next one. */
static void *circles(void *resume)
{
    rounds(resume);
    circle();
    return NULL;
}

static pthread_mutex_t mutexes[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void *take_both(void *which)
{
    int first = which != NULL;
    pthread_mutex_lock(&mutexes[first]);
    usleep(50000);
    pthread_mutex_lock(&mutexes[!first]);
    return NULL;
}

static void wait_for_mutexes(void)
{
    pthread_t threads[2];
    for (int own = 0; own < 2; own++)
        REQUIRE(pthread_create(&threads[own], NULL, take_both, own ? threads : NULL) == 0);
    for (int own = 0; own < 2; own++)
        pthread_join(threads[own], NULL);
}

static void *sends(void *unused)
{
    while (is_there()) {
        pass_ms(5);
        MPI_Send(&rank, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD);
    }
    return unused;
}

static void start_more(void)
{
    pthread_t threads[2];
    for (int own = 0; own < 2; own++)
        REQUIRE(pthread_create(&threads[own], NULL, sends, NULL) == 0);
    for (int own = 0; own < 2; own++)
        pthread_join(threads[own], NULL);
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t other;
    char *resume = argc > 3 ? argv[3] : NULL;
    file = argv[1];
    const char *scene = argv[2];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    if (strcmp(scene, "thread") == 0) {
        REQUIRE(pthread_create(&other, NULL, rounds, resume) == 0);
        pthread_join(other, NULL);
    } else if (strcmp(scene, "circles") == 0) {
        REQUIRE(pthread_create(&other, NULL, circles, resume) == 0);
        pthread_join(other, NULL);
    } else if (strcmp(scene, "looks") == 0) {
        looks();
    } else if (strcmp(scene, "steps") == 0) {
        steps();
    } else {
        rounds(resume);
    }
    if (strcmp(scene, "hangs") == 0)
        circle();
    if (strcmp(scene, "more") == 0)
        start_more();
    if (strcmp(scene, "mutexes") == 0) {
        if (rank == 0)
            wait_for_mutexes();
        MPI_Barrier(WORLD);
    }
    if (strcmp(scene, "dies") == 0) {
        if (rank == 1)
            raise(SIGKILL);
        MPI_Barrier(WORLD);
    }
    if (strcmp(scene, "computes") == 0) {
        while (rank == 1 && is_there())
            pass_ms(10);
        MPI_Barrier(WORLD);
    }
    MPI_Finalize();
    return 0;
}
