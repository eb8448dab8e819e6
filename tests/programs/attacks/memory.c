/* Copes with memory that cannot be had: nothing can be mapped while it makes many different
 * calls. */
#include "../common.h"
#include <sys/resource.h>

int main(int argc, char **argv)
{
    struct rlimit before, none;
    MPI_Init(&argc, &argv);
    start_clock();
    getrlimit(RLIMIT_AS, &before);
    none = before;
    none.rlim_cur = 1 << 20;
    REQUIRE(setrlimit(RLIMIT_AS, &none) == 0);
    for (int tag = 0; tag < 100000; tag++)
        MPI_Send(&tag, 1, MPI_INT, MPI_PROC_NULL, tag % 30000, WORLD);
    REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
    MPI_Barrier(WORLD);
    result(0);
    MPI_Finalize();
    return 0;
}
