/* Correct, but not usual: calls before Init and after Finalize, another working directory,
 * closed standard streams, thousands of tags, deep recursion, a new communicator per step. */
#include "../common.h"
#include <fcntl.h>

static NOINLINE long recurse(int depth)
{
    volatile char frame[64];
    frame[0] = (char)depth;
    if (depth == 0) {
        long one = 1, total = 0;
        MPI_Allreduce(&one, &total, 1, MPI_LONG, MPI_SUM, WORLD);
        return total + frame[0];
    }
    return recurse(depth - 1) + frame[0] - (char)depth;
}

int main(int argc, char **argv)
{
    int flag = -1, version, subversion, length;
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    long sum = 0;
    MPI_Initialized(&flag);
    if (flag != 0 || MPI_Get_version(&version, &subversion) != MPI_SUCCESS)
        return 1;
    MPI_Get_library_version(name, &length);
    start(&argc, &argv);
    REQUIRE(chdir("/") == 0);
    for (int tag = 0; tag < 20000; tag++) {
        if (rank == 0) {
            MPI_Send(&tag, 1, MPI_INT, 1, tag, WORLD);
        } else {
            int value = -1;
            MPI_Recv(&value, 1, MPI_INT, 0, tag, WORLD, MPI_STATUS_IGNORE);
            REQUIRE(value == tag);
            sum += value;
        }
    }
    for (int i = 0; i < 200; i++) {
        MPI_Comm copy;
        MPI_Comm_dup(WORLD, &copy);
        MPI_Barrier(copy);
        MPI_Comm_free(&copy);
    }
    REQUIRE(recurse(5000) == 2);
    sum += recurse(3);
    result(sum);
    fflush(NULL);
    close(0);
    close(2);
    MPI_Finalize();
    MPI_Finalized(&flag);
    return flag == 1 ? 0 : 1;
}
