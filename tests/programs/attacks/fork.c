/* Ranks fork in the middle. The child ends by exit(), which runs what libraries left to be run
 * at exit, by _exit(), or by exec; the parent goes on. Arguments: exit, _exit, exec, system, vfork,
 * spawn (by posix_spawn), daemon (closes all descriptors). */
#include "../common.h"
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

/* As what goes to the background does: all descriptors are closed and have new files. */
static void close_all_descriptors(void)
{
    for (int fd = 0; fd < 1024; fd++)
        close(fd);
    if (open("/dev/null", O_RDWR) != 0 || dup(0) != 1 || dup(0) != 2)
        _exit(1);
}

static void child_that(const char *how)
{
    pid_t child;
    int status = -1;
    if (strcmp(how, "system") == 0) {
        REQUIRE(system("exit 7") == 7 << 8);
        return;
    }
    fflush(NULL);
    if (strcmp(how, "spawn") == 0) {
        char *words[] = {"sh", "-c", "exit 7", NULL};
        REQUIRE(posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ) == 0);
    } else if (strcmp(how, "vfork") == 0) {
        child = vfork();
        if (child == 0) {
            execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
            _exit(1);
        }
    } else {
        child = fork();
    }
    if (child == 0) {
        if (strcmp(how, "daemon") == 0)
            close_all_descriptors();
        if (strcmp(how, "_exit") == 0)
            _exit(7);
        if (strcmp(how, "exec") == 0)
            execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
        exit(7);
    }
    waitpid(child, &status, 0);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 3; round++) {
        int value = -1;
        if (rank == 0) {
            at(round, DELAY);
            MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD);
        } else {
            at(round, 0);
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
            REQUIRE(value == round);
        }
        child_that(argv[1]);
        sum += value;
    }
    finish(4, sum);
}
