/* Ranks that pass messages for a while and count in a file, each in its own, the calls that
 * returned: a test kills them at any moment and compares. Messages have many tags, so that
 * definitions are written all the time. Each step looks for a message, too, which is not counted. Arguments: seconds; the files' names without the rank. */
#include "../common.h"
#include <fcntl.h>
#include <sys/mman.h>

enum { TAGS = 3000 };

static volatile long *returned;

#define COUNTED(call)                                                                         \
    do {                                                                                      \
        call;                                                                                 \
        ++*returned;                                                                          \
    } while (0)

static volatile long *counter(const char *prefix)
{
    char name[4096];
    int file;
    void *map;
    snprintf(name, sizeof name, "%s%d", prefix, rank);
    file = open(name, O_RDWR | O_CREAT | O_EXCL, 0644);
    REQUIRE(file >= 0 && ftruncate(file, sizeof *returned) == 0);
    map = mmap(NULL, sizeof *returned, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    REQUIRE(map != MAP_FAILED);
    close(file);
    return map;
}

int main(int argc, char **argv)
{
    double end;
    int left, right;
    char sent[64] = "", got[64];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    returned = counter(argv[2]);
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    end = now() + atof(argv[1]);
    for (int round = 0, go_on = 1; go_on; round++) {
        for (int step = 0; step < 50; step++) {
            int tag = (50 * round + step) % TAGS;
            int found;
            MPI_Request both[2];
            MPI_Iprobe(left, TAGS, WORLD, &found, MPI_STATUS_IGNORE);
            COUNTED(MPI_Irecv(got, sizeof got, MPI_CHAR, left, tag, WORLD, &both[0]));
            COUNTED(MPI_Isend(sent, 1 + tag % 60, MPI_CHAR, right, tag, WORLD, &both[1]));
            COUNTED(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        }
        go_on = now() < end;
        COUNTED(MPI_Allreduce(MPI_IN_PLACE, &go_on, 1, MPI_INT, MPI_MIN, WORLD));
    }
    result(rank);
    MPI_Finalize();
    return 0;
}
