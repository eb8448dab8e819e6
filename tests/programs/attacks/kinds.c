/* Calls of more kinds than a recording tells apart: messages of ever new lengths, then two operations
 * on ever new ways through a recursion. */
#include "../common.h"

enum { LENGTHS = 66000, WAYS = 40000 };

static int ways;

typedef int operation(const void *, int, MPI_Datatype, int, int, MPI_Comm);

/* Four ways to go on at each of nine levels. */
NOINLINE static int descend(operation *call, int level)
{
    int none = 0;
    if (level == 9)
        return ways++ < WAYS ? call(&none, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD) : 0;
    if (ways < WAYS)
        none += descend(call, level + 1);
    if (ways < WAYS)
        none += descend(call, level + 1);
    if (ways < WAYS)
        none += descend(call, level + 1);
    if (ways < WAYS)
        none += descend(call, level + 1);
    return none;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int length = 0; length < LENGTHS; length++)
        MPI_Send(&ways, length, MPI_BYTE, MPI_PROC_NULL, 0, WORLD);
    for (operation *volatile call = MPI_Send; call != NULL;) {
        ways = 0;
        descend(call, 0);
        call = call == MPI_Send ? MPI_Ssend : NULL;
    }
    MPI_Finalize();
    return 0;
}
