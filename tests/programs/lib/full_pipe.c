/* A pipe that is full, for programs in other languages: a write of a page waits until the reader, a
 * thread that calls no MPI, takes one. It does so 60 ms after full_pipe_drains(). */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static char page[4096];
static int ends[2];
static sem_t wanted;

static void *drain(void *unused)
{
    static char taken[sizeof page];
    const char *scale = getenv("SCHEDULE_SCALE");
    for (;;) {
        double left = 0.060 * (scale ? atof(scale) : 1);
        struct timespec t = {(time_t)left, (long)((left - (time_t)left) * 1e9)};
        while (sem_wait(&wanted) != 0) {
        }
        while (nanosleep(&t, &t) != 0) {
        }
        if (read(ends[0], taken, sizeof taken) <= 0)
            return unused;
    }
}

/* Returns the descriptor to write to; -1 if that is impossible. */
int full_pipe_start(void)
{
    pthread_t reader;
    if (pipe(ends) != 0 || sem_init(&wanted, 0, 0) != 0)
        return -1;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], page, sizeof page) == sizeof page) {
    }
    fcntl(ends[1], F_SETFL, 0);
    return pthread_create(&reader, NULL, drain, NULL) == 0 ? ends[1] : -1;
}

void full_pipe_drains(void) { sem_post(&wanted); }
