/* A slow link to each process: a transfer to or from a process keeps its link busy for 400 ns
 * per byte, and others have to wait meanwhile. Programs are linked with this library before
 * those of MPI and OpenSHMEM. It stands for a network on which transfers compete.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { LINKS = 8, NS_PER_BYTE = 400 };
static int links[LINKS];

/* The ranks of a run have one parent. */
static void name_of(int target, char *name, size_t size)
{
    const char *directory = getenv("TMPDIR");
    snprintf(name, size, "%s/slow-link-%d-%d", directory ? directory : "/tmp", (int)getppid(), target);
}

static int link_to(int target)
{
    if (target < 0 || target >= LINKS)
        abort();
    if (links[target] == 0) {
        char name[256];
        name_of(target, name, sizeof name);
        links[target] = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (links[target] < 0)
            abort();
    }
    return links[target];
}

/* How many times as long everything takes, as in common.h. */
static double scale(void)
{
    const char *text = getenv("SCHEDULE_SCALE");
    return text ? atof(text) : 1;
}

static void occupy(int target, size_t bytes)
{
    long ns = (long)(scale() * bytes * NS_PER_BYTE);
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    int link = link_to(target);
    while (flock(link, LOCK_EX) != 0) {
    }
    while (nanosleep(&t, &t) != 0) {
    }
}

static void leave(int target) { flock(link_to(target), LOCK_UN); }

/* Something else than a transfer keeps a process's link busy for so long. */
void slow_link_busy(int target, long ms)
{
    occupy(target, (size_t)(ms * 1000000 / NS_PER_BYTE));
    leave(target);
}

__attribute__((destructor)) static void forget(void)
{
    for (int target = 0; target < LINKS; target++)
        if (links[target] > 0) {
            char name[256];
            name_of(target, name, sizeof name);
            unlink(name);
        }
}

void pshmem_putmem(void *, const void *, size_t, int);
void pshmem_getmem(void *, const void *, size_t, int);

void shmem_putmem(void *target, const void *source, size_t bytes, int pe)
{
    occupy(pe, bytes);
    pshmem_putmem(target, source, bytes, pe);
    leave(pe);
}

void shmem_getmem(void *target, const void *source, size_t bytes, int pe)
{
    occupy(pe, bytes);
    pshmem_getmem(target, source, bytes, pe);
    leave(pe);
}

int MPI_Put(const void *origin, int count, MPI_Datatype type, int rank, MPI_Aint displacement,
            int target_count, MPI_Datatype target_type, MPI_Win window)
{
    int size, result;
    PMPI_Type_size(type, &size);
    occupy(rank, (size_t)count * size);
    result = PMPI_Put(origin, count, type, rank, displacement, target_count, target_type, window);
    leave(rank);
    return result;
}

int MPI_Get(void *origin, int count, MPI_Datatype type, int rank, MPI_Aint displacement,
            int target_count, MPI_Datatype target_type, MPI_Win window)
{
    int size, result;
    PMPI_Type_size(type, &size);
    occupy(rank, (size_t)count * size);
    result = PMPI_Get(origin, count, type, rank, displacement, target_count, target_type, window);
    leave(rank);
    return result;
}
