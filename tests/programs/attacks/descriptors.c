/* Needs its descriptors for itself: closes one that it did not open and has the number again for
 * a file of its own; and opens a file while it has more threads than descriptors. */
#include "../common.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { THREADS = 150, DESCRIPTORS = 100 };

static pthread_barrier_t called, done;

static void *call(void *unused)
{
    int x = 0;
    MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF);
    pthread_barrier_wait(&called);
    pthread_barrier_wait(&done);
    return unused;
}

/* The descriptor of a trace, if there is one. */
static int of_trace(void)
{
    for (int fd = 3; fd < 1000; fd++) {
        char link[40], name[1000];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, name, sizeof name - 1);
        if (length > 0 && (name[length] = 0, strstr(name, ".lgt")))
            return fd;
    }
    return -1;
}

int main(int argc, char **argv)
{
    int provided, fd;
    char name[40];
    struct stat file;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    start_clock();

    if ((fd = of_trace()) >= 0)
        close(fd);
    snprintf(name, sizeof name, "own-file-%d", rank);
    REQUIRE((fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0644)) >= 0);
    REQUIRE(write(fd, "own", 3) == 3);
    for (int i = 0; i < 400000; i++)
        MPI_Send(&i, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD);
    REQUIRE(fstat(fd, &file) == 0 && file.st_size == 3);
    close(fd);

    struct rlimit limit = {DESCRIPTORS, DESCRIPTORS};
    pthread_t threads[THREADS];
    pthread_barrier_init(&called, NULL, THREADS + 1);
    pthread_barrier_init(&done, NULL, THREADS + 1);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, call, NULL) == 0);
    pthread_barrier_wait(&called);
    REQUIRE((fd = open(name, O_RDONLY)) >= 0);
    pthread_barrier_wait(&done);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    /* One more thread than there is room for. */
    limit.rlim_cur = 0;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    pthread_barrier_init(&called, NULL, 1);
    pthread_barrier_init(&done, NULL, 1);
    REQUIRE(pthread_create(&threads[0], NULL, call, NULL) == 0);
    pthread_join(threads[0], NULL);
    limit.rlim_cur = DESCRIPTORS;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);

    MPI_Barrier(WORLD);
    result(file.st_size);
    MPI_Finalize();
    return 0;
}
