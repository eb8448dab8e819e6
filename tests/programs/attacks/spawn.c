/* A run that starts another run: two children with a communicator world of their own, with whom
 * the parents talk over an intercommunicator and a merged one. */
#include "../common.h"

int main(int argc, char **argv)
{
    MPI_Comm parents, others, merged;
    int value = -1, total = 0;
    char *arguments[] = {(char *)"child", NULL};
    int is_child;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    MPI_Comm_get_parent(&parents);
    is_child = parents != MPI_COMM_NULL;
    if (is_child)
        others = parents;
    else
        MPI_Comm_spawn(argv[0], arguments, 2, MPI_INFO_NULL, 0, WORLD, &others, MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(others, is_child, &merged);
    if (is_child) {
        MPI_Recv(&value, 1, MPI_INT, rank, 3, others, MPI_STATUS_IGNORE);
        REQUIRE(value == 10 * rank);
    } else {
        value = 10 * rank;
        MPI_Send(&value, 1, MPI_INT, rank, 3, others);
    }
    MPI_Allreduce(&value, &total, 1, MPI_INT, MPI_SUM, merged);
    REQUIRE(total == 20);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&others);
    if (!is_child)
        result(total);
    MPI_Finalize();
    return 0;
}
