/* The program is not linked with MPI: it loads it and looks its functions up, as interpreters do.
 * Argument: how it loads it. Rank 1 waits 3 x 60 ms for rank 0. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *mpi;

static void *look_up(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL || dlerror() != NULL) {
        fprintf(stderr, "%s: not found\n", name);
        exit(4);
    }
    return found;
}

#define LOOK_UP(name) ((__typeof__(&name))look_up(mpi, #name))

/* Handles are addresses in Open MPI, numbers in MPICH. */
#ifdef OPEN_MPI
#define KNOWN(handle, name) look_up(mpi, "ompi_mpi_" #name)
#else
#define KNOWN(handle, name) handle
#endif

static void load(const char *how)
{
    const char *library = MPI_LIBRARY;
    int scope = RTLD_GLOBAL;
    if (strcmp(how, "local") == 0)
        scope = RTLD_LOCAL;
    if (strcmp(how, "deepbind") == 0) /* Julia's way. */
        scope = RTLD_LOCAL | RTLD_DEEPBIND;
    mpi = dlopen(library, RTLD_NOW | scope);
    if (mpi == NULL)
        exit(1);
    for (int times = 0; strcmp(how, "again") == 0 && times < 3; times++) {
        /* Only to see which MPI it is; and something else takes its place in memory. */
        int version = 0, minor = 0;
        LOOK_UP(MPI_Get_version)(&version, &minor);
        look_up(mpi, "MPI_Init");
        if (version < 3 || dlclose(mpi) != 0 || malloc(300 << 20) == NULL)
            exit(2);
        mpi = dlopen(library, RTLD_NOW | scope);
        if (mpi == NULL)
            exit(3);
    }
}

static void sleep_until(double until)
{
    struct timespec t = {(time_t)until, (long)((until - (time_t)until) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0) {
    }
}

int main(int argc, char **argv)
{
    int rank, flag = -1, sum = 0;
    struct timespec t;
    double mine, origin;
    /* As in common.h. */
    const char *text = getenv("SCHEDULE_SCALE");
    double scale = text ? atof(text) : 1;
    load(argv[1]);
    MPI_Comm world = KNOWN(MPI_COMM_WORLD, comm_world);
    MPI_Datatype integer = KNOWN(MPI_INT, int), real = KNOWN(MPI_DOUBLE, double);
    LOOK_UP(MPI_Init)(&argc, &argv);
    LOOK_UP(MPI_Comm_rank)(world, &rank);
    clock_gettime(CLOCK_MONOTONIC, &t);
    mine = t.tv_sec + 1e-9 * t.tv_nsec + 0.02;
    LOOK_UP(MPI_Allreduce)(&mine, &origin, 1, real, KNOWN(MPI_MAX, op_max), world);
    for (int round = 0; round < 3; round++) {
        int value = round;
        sleep_until(origin + scale * (0.1 * round + (rank == 0 ? 0.06 : 0)));
        if (rank == 0)
            LOOK_UP(MPI_Send)(&value, 1, integer, 1, 0, world);
        else
            LOOK_UP(MPI_Recv)(&value, 1, integer, 0, 0, world, MPI_STATUS_IGNORE); /* MARK recv */
        sum += value;
    }
    sleep_until(origin + scale * 0.3);
    if (strcmp(argv[1], "global") == 0)
        ((__typeof__(&MPI_Initialized))look_up(RTLD_DEFAULT, "MPI_Initialized"))(&flag);
    else
        LOOK_UP(MPI_Initialized)(&flag);
    printf("rank %d initialized %d checksum %d\n", rank, flag, sum);
    return LOOK_UP(PMPI_Finalize)();
}
