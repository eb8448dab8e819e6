/* POSIX I/O in ways that a recorder of it must not notice. Arguments:
 * signals: a handler writes at a high rate into a pipe whose reader is slow, wherever the program is;
 * children: children of fork, vfork and exec write;
 * results: results, errno, short transfers and errors are the program's;
 * cancel: threads end in a read, and jump out of one;
 * streams: files by stdio, by descriptors with offsets, in parts. */
#include "../common.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { PAGE = 4096 };

static int ends[2];

/* The rest of a round's time goes by in a call that waits. */
static long late_message(int round)
{
    int value = -1;
    if (rank == 0) {
        at(round, DELAY);
        MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD);
        return round;
    }
    at(round, 0);
    MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
    REQUIRE(value == round);
    return value;
}

static int begun, written, wrong;

/* Waits for the reader: far longer than what makes a record. */
static void on_signal(int number)
{
    static const char page[PAGE];
    int before = errno;
    (void)number;
    __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
    errno = 4711;
    if (write(ends[1], page, sizeof page) != sizeof page || errno != 4711)
        wrong = 1;
    if (write(-1, page, 1) != -1 || errno != EBADF)
        wrong = 1;
    __atomic_add_fetch(&written, 1, __ATOMIC_SEQ_CST);
    errno = before;
}

static void *read_slowly(void *unused)
{
    static char page[PAGE];
    struct timespec pause = {.tv_nsec = 100000};
    while (read(ends[0], page, sizeof page) > 0)
        nanosleep(&pause, NULL);
    return unused;
}

/* Memory is taken and given back all the time, so that signals come while the allocator is locked. */
static void churn(double until)
{
    static void *blocks[64];
    for (unsigned i = 0; now() < until; i++) {
        void **block = &blocks[i % 64];
        free(*block);
        *block = malloc(1 + (i * 7919) % 100000);
        REQUIRE(*block != NULL);
    }
}

static void signals(int round)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    pthread_t reader;
    sigset_t all, before;
    action.sa_flags = SA_RESTART;
    (void)round;
    REQUIRE(pipe(ends) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    while (write(ends[1], "x", 1) == 1) {
    }
    REQUIRE(errno == EAGAIN && fcntl(ends[1], F_SETFL, 0) == 0);
    /* The reader inherits the mask. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    REQUIRE(pthread_create(&reader, NULL, read_slowly, NULL) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    REQUIRE(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    churn(now() + 0.05);
    for (int i = 0; i < 200; i++) {
        char name[] = "/dev/null";
        int fd = open(name, O_WRONLY);
        int flag;
        REQUIRE(fd >= 0 && write(fd, name, 3) == 3 && close(fd) == 0);
        MPI_Iprobe(MPI_ANY_SOURCE, 77, WORLD, &flag, MPI_STATUS_IGNORE);
        churn(now() + 0.0001);
    }
    REQUIRE(setitimer(ITIMER_REAL, &never, NULL) == 0);
    /* The library's threads run handlers, too. */
    do
        pass_ms(5);
    while (__atomic_load_n(&begun, __ATOMIC_SEQ_CST) != __atomic_load_n(&written, __ATOMIC_SEQ_CST));
    close(ends[1]);
    REQUIRE(pthread_join(reader, NULL) == 0);
    close(ends[0]);
    REQUIRE(written > 50 && !wrong);
}

static void reap(pid_t child)
{
    int status = -1;
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* Children write slowly: the pipe is full, and this process reads late. */
static void children(int round)
{
    static char page[PAGE];
    for (int how = 0; how < 3; how++) {
        pid_t child;
        int taken = 0, got;
        REQUIRE(pipe(ends) == 0);
        fflush(NULL);
        if (how == 1) {
            child = vfork();
            if (child == 0) {
                /* The parent sleeps meanwhile; nothing may be left behind in its memory. */
                int fd = open("/dev/null", O_RDWR);
                int is_good = fd >= 0 && write(fd, "x", 1) == 1 && fsync(fd) == -1 && close(fd) == 0;
                int synced = open(rank == 0 ? "child-0" : "child-1", O_CREAT | O_WRONLY, 0600);
                is_good = is_good && write(synced, page, sizeof page) == sizeof page &&
                          fsync(synced) == 0 && close(synced) == 0;
                dup2(ends[1], 1);
                if (is_good)
                    execl("/bin/sh", "sh", "-c", "echo written; exit 7", (char *)NULL);
                _exit(1);
            }
        } else {
            child = fork();
            if (child == 0) {
                for (int i = 0; how == 0 && i < 40; i++)
                    if (write(ends[1], page, sizeof page) != sizeof page)
                        _exit(1);
                dup2(ends[1], 1);
                if (how == 2)
                    execl("/bin/sh", "sh", "-c", "echo written; exit 7", (char *)NULL);
                _exit(how == 0 ? 7 : 1);
            }
        }
        close(ends[1]);
        pass_ms(1);
        while ((got = read(ends[0], page, sizeof page)) > 0)
            taken += got;
        REQUIRE(got == 0 && taken == (how == 0 ? 40 * PAGE : 8));
        close(ends[0]);
        reap(child);
    }
    (void)round;
}

static volatile size_t nowhere = 8;

static void results(int round)
{
    char text[16] = "";
    int fd = open("/dev/null", O_RDWR), pair[2];
    REQUIRE(fd >= 0);
    errno = 4711;
    REQUIRE(write(fd, "abc", 3) == 3 && errno == 4711);
    REQUIRE(read(fd, text, 3) == 0 && errno == 4711);
    REQUIRE(close(fd) == 0 && errno == 4711);
    REQUIRE(write(fd, "abc", 3) == -1 && errno == EBADF);
    errno = 0;
    REQUIRE(close(fd) == -1 && errno == EBADF);
    REQUIRE(fsync(-1) == -1 && errno == EBADF);
    REQUIRE(open("/no/such/file", O_RDONLY) == -1 && errno == ENOENT);
    REQUIRE(fopen("/no/such/file", "r") == NULL && errno == ENOENT);
    REQUIRE(openat(-1, "file", O_RDONLY) == -1 && errno == EBADF);
    REQUIRE(pipe(pair) == 0);
    REQUIRE(write(pair[1], (void *)nowhere, 1) == -1 && errno == EFAULT);
    /* Slow enough for records: a read that waits, and one that fails after it waited. */
    pid_t child = fork();
    if (child == 0) {
        usleep(2000);
        _exit(write(pair[1], "ab", 2) == 2 ? 7 : 1);
    }
    errno = 4711;
    REQUIRE(read(pair[0], text, 10) == 2 && errno == 4711 && memcmp(text, "ab", 3) == 0);
    reap(child);
    fd = open("results", O_CREAT | O_EXCL | O_RDWR, 0640);
    if (fd < 0)
        REQUIRE(errno == EEXIST && (fd = open("results", O_RDWR)) >= 0);
    errno = 4711;
    REQUIRE(write(fd, "0123", 4) == 4 && fsync(fd) == 0 && fdatasync(fd) == 0 && errno == 4711);
    close(fd);
    close(pair[0]);
    close(pair[1]);
    (void)round;
}

static jmp_buf back;

static void jump(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

static void *read_for_ever(void *pointer)
{
    char one;
    int flag;
    MPI_Initialized(&flag);
    while (read(ends[0], &one, 1) >= 0) {
    }
    return pointer;
}

static void cancel(int round)
{
    pthread_t reader;
    void *result = NULL;
    struct itimerval once = {{0, 0}, {0, 5000}};
    struct sigaction action = {.sa_handler = jump, .sa_flags = SA_NODEFER};
    char one;
    REQUIRE(pipe(ends) == 0);
    REQUIRE(pthread_create(&reader, NULL, read_for_ever, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        REQUIRE(write(ends[1], "x", 1) == 1);
        usleep(100);
    }
    REQUIRE(pthread_cancel(reader) == 0 && pthread_join(reader, &result) == 0);
    REQUIRE(result == PTHREAD_CANCELED);
    while (fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 && read(ends[0], &one, 1) == 1) {
    }
    REQUIRE(fcntl(ends[0], F_SETFL, 0) == 0);
    REQUIRE(sigaction(SIGALRM, &action, NULL) == 0);
    if (sigsetjmp(back, 1) == 0) {
        REQUIRE(setitimer(ITIMER_REAL, &once, NULL) == 0);
        read(ends[0], &one, 1);
        REQUIRE(0);
    }
    close(ends[0]);
    close(ends[1]);
    (void)round;
}

static void streams(int round)
{
    static char all[1 << 16], back_again[1 << 16];
    char name[32], line[64], *grown = NULL;
    size_t room = 0;
    struct iovec parts[2] = {{all, 100}, {all + 100, 200}};
    struct iovec places[2] = {{back_again, 150}, {back_again + 150, 150}};
    snprintf(name, sizeof name, "streams-%d-%d", rank, round);
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (char)(i * 31 + round);
    FILE *file = fopen(name, "w+");
    REQUIRE(file != NULL && fputs("first\n", file) >= 0 && fputs("second\n", file) >= 0);
    REQUIRE(fwrite(all, 16, 4096, file) == 4096 && fflush(file) == 0);
    REQUIRE(fseek(file, 0, SEEK_SET) == 0 && fgets(line, sizeof line, file) == line);
    REQUIRE(strcmp(line, "first\n") == 0 && getline(&grown, &room, file) == 7);
    REQUIRE(strcmp(grown, "second\n") == 0 && fread(back_again, 1, sizeof all, file) == sizeof all);
    REQUIRE(memcmp(all, back_again, sizeof all) == 0 && fread(line, 1, 1, file) == 0 && feof(file));
    REQUIRE(fclose(file) == 0 && unlink(name) == 0);
    free(grown);
    int fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0600);
    REQUIRE(writev(fd, parts, 2) == 300 && pwrite(fd, all + 300, 700, 300) == 700);
    REQUIRE(pwritev(fd, parts, 2, 1000) == 300 && preadv(fd, places, 2, 0) == 300);
    REQUIRE(memcmp(all, back_again, 300) == 0 && pread(fd, back_again, 1000, 0) == 1000);
    REQUIRE(memcmp(all, back_again, 1000) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    REQUIRE(readv(fd, places, 2) == 300 && ftruncate(fd, 10) == 0 && lseek(fd, 0, SEEK_END) == 10);
    REQUIRE(fsync(fd) == 0 && close(fd) == 0 && unlink(name) == 0);
    fd = creat(name, 0600);
    REQUIRE(fd >= 0 && close(fd) == 0 && unlink(name) == 0);
}

int main(int argc, char **argv)
{
    long sum = 0;
    int provided;
    struct { const char *name; void (*does)(int); } ways[] = {
        {"signals", signals}, {"children", children}, {"results", results},
        {"cancel", cancel},   {"streams", streams},
    };
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    start_clock();
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
            if (strcmp(argv[1], ways[i].name) == 0)
                ways[i].does(round);
        MPI_Barrier(WORLD);
        start_clock();
        sum += late_message(0);
    }
    start_clock();
    finish(1, sum);
}
