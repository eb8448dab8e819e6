/* A short run with messages, a barrier and an allreduce, for tests that spoil its trace.
 * Arguments: the number of messages; a limit for the size of files, set after MPI_Init, as if
 * the disk were full from then on. */
#include "../common.h"
#include <sys/resource.h>

int main(int argc, char **argv)
{
    int messages = argc > 1 ? atoi(argv[1]) : 100;
    long sum = 0, total = 0;
    MPI_Init(&argc, &argv);
    start_clock();
    if (argc > 2) {
        struct rlimit limit = {(rlim_t)atol(argv[2]), (rlim_t)atol(argv[2])};
        REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    }
    for (int tag = 0; tag < messages; tag++) {
        int value = -1;
        if (rank == 0) {
            MPI_Send(&tag, 1, MPI_INT, 1, tag, WORLD);
        } else if (rank == 1) {
            MPI_Recv(&value, 1, MPI_INT, 0, tag, WORLD, MPI_STATUS_IGNORE);
            REQUIRE(value == tag);
            sum += value;
        }
        if (tag % 10 == 0)
            MPI_Barrier(WORLD);
    }
    MPI_Allreduce(&sum, &total, 1, MPI_LONG, MPI_SUM, WORLD);
    result(total);
    MPI_Finalize();
    return 0;
}
