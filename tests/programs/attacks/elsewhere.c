/* Goes to another directory and closes the descriptors that it finds: before MPI starts, and after
 * it has ended also its own, of which it has the numbers again for a file. The argument is that
 * directory. A thread that begins there has a place in the trace, too. */
#include "../common.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

static void *call(void *unused)
{
    int x = 0;
    MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF);
    return unused;
}

int main(int argc, char **argv)
{
    long sum = 0;
    int provided, fd;
    char name[40];
    pthread_t thread;
    struct stat file;
    /* Without the socket that MPICH's launcher gives it a program cannot start MPI. */
    const char *pmi = getenv("PMI_FD");
    for (fd = 3; fd < 1024; fd++)
        if (pmi == NULL || fd != atoi(pmi))
            close(fd);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    start_clock();
    REQUIRE(chdir(argv[1]) == 0);
    REQUIRE(pthread_create(&thread, NULL, call, NULL) == 0);
    pthread_join(thread, NULL);
    for (int round = 0; round < 3; round++) {
        int value = -1;
        at(round, rank == 0 ? DELAY : 0);
        if (rank == 0)
            MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD);
        else
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
        sum += value;
    }
    /* More than a window of the trace. */
    for (int i = 0; i < 200000; i++)
        MPI_Send(&i, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD);
    at(4, 0);
    result(sum);
    MPI_Finalize();
    fflush(NULL);
    snprintf(name, sizeof name, "own-file-%d", rank);
    for (fd = 0; fd < 1024; fd++)
        close(fd);
    if (open(name, O_CREAT | O_TRUNC | O_RDWR, 0644) != 0 || dup(0) != 1 || dup(0) != 2)
        return 1;
    if (write(0, "own", 3) != 3 || fstat(0, &file) != 0 || file.st_size != 3)
        return 2;
    return 0;
}
