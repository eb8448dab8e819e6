/* Files that are cut off while they are mapped: the trace's own (`trace BYTES`), of which the
 * program must not know, and the program's (`handled`, `chained`, `default`), whose SIGBUS is its
 * own; `sent` is one that a process sends. */
#include "../common.h"
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

static sigjmp_buf after;
static volatile int faults;
static struct sigaction before;

static void recover(int signal)
{
    (void)signal;
    faults++;
    siglongjmp(after, 1);
}

static void count(int signal)
{
    (void)signal;
    faults++;
}

/* One that leaves to what was there before it what it does not know. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(signal, info, context);
    else if (before.sa_handler == SIG_DFL)
        sigaction(SIGBUS, &before, NULL);
    else
        before.sa_handler(signal);
}

static void cut_off_traces(long bytes)
{
    const char *directory = getenv("LAGGARD_TRACE_DIR");
    DIR *files = directory ? opendir(directory) : NULL;
    for (struct dirent *file; files && (file = readdir(files));) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", directory, file->d_name);
        if (strstr(path, ".lgt"))
            REQUIRE(truncate(path, bytes) == 0);
    }
}

static void touch_what_is_not_there(void)
{
    char name[] = "/tmp/cut-off-XXXXXX";
    int file = mkstemp(name);
    REQUIRE(file >= 0 && unlink(name) == 0 && ftruncate(file, 4096) == 0);
    volatile char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    REQUIRE(map != MAP_FAILED && ftruncate(file, 0) == 0);
    if (sigsetjmp(after, 1) == 0)
        *map = 1;
}

static NOINLINE void pass_messages(int count)
{
    for (int i = 0; i < count; i++)
        if (rank == 0)
            MPI_Send(&i, 1, MPI_INT, 1, 0, WORLD);
        else
            MPI_Recv(&i, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    const char *how = argv[1];
    if (strcmp(how, "handled") == 0)
        signal(SIGBUS, recover);
    start(&argc, &argv);
    if (strcmp(how, "chained") == 0) {
        struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO};
        sigaction(SIGBUS, &action, &before);
    }
    if (strcmp(how, "sent") == 0)
        signal(SIGBUS, count);
    pass_messages(1000);
    MPI_Barrier(WORLD);
    if (strcmp(how, "trace") == 0) {
        if (rank == 0)
            cut_off_traces(atol(argv[2]));
    } else if (strcmp(how, "sent") == 0) {
        raise(SIGBUS);
    } else {
        touch_what_is_not_there();
    }
    MPI_Barrier(WORLD);
    pass_messages(100000);
    result(faults);
    MPI_Finalize();
}
