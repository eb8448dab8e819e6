/* The program is not linked with OpenSHMEM: it loads it and looks its functions up, as
 * interpreters do. PE 1 waits 3 x 60 ms for a value that PE 0 writes. Names that begin alike and
 * are not there are not found. Linked with -rdynamic: Open MPI's library takes for symmetric what
 * lies before the symbol `_end`, which must be that of the program and not its own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { AT_LEAST = 5 }; /* SHMEM_CMP_GE of Open MPI. */

static void *library;

static void *look_up(const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL || dlerror() != NULL) {
        fprintf(stderr, "%s: not found\n", name);
        exit(4);
    }
    return found;
}

#define CALL(type, name, ...) ((type)look_up(name))(__VA_ARGS__)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void sleep_until(double until)
{
    struct timespec t = {(time_t)until, (long)((until - (time_t)until) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0) {
    }
}

static void wait_for(long *flag, long value)
{
    CALL(void (*)(long *, int, long), "shmem_long_wait_until", flag, AT_LEAST, value);
}

int main(void)
{
    int missing = 0;
    library = dlopen("liboshmem.so.40", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return 1;
    CALL(void (*)(void), "shmem_init");
    int pe = CALL(int (*)(void), "shmem_my_pe");
    long *flag = CALL(void *(*)(size_t, size_t), "shmem_calloc", 1, sizeof(long));
    CALL(void (*)(void), "shmem_barrier_all");
    double origin = now() + 0.02;
    for (int round = 0; round < 3; round++) {
        sleep_until(origin + 0.1 * round + (pe == 0 ? 0.06 : 0));
        if (pe == 0)
            CALL(void (*)(long *, long, int), "shmem_long_p", flag, round + 1, 1);
        else
            wait_for(flag, round + 1);
    }
    sleep_until(origin + 0.3);
    const char *names[] = {"s", "sh", "shm", "shmem_", "star", "start_pe", "st", ""};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        missing += dlsym(library, names[n]) == NULL && dlerror() != NULL;
    printf("PE %d flag %ld missing %d\n", pe, *flag, missing);
    CALL(void (*)(void), "shmem_barrier_all");
    CALL(void (*)(void), "shmem_finalize");
    return 0;
}
