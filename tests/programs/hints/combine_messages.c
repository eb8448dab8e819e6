/* Rank 0 sends rank 1 an array element by element, or at once. */
#include "hints.h"

enum { COUNT = 400000 };
static double data[COUNT];

int main(int argc, char **argv)
{
    int each = FLAWED ? 1 : COUNT;
    begin(&argc, &argv);
    for (int at = 0; at < COUNT; at += each) {
        if (rank == 0)
            MPI_Send(data + at, each, MPI_DOUBLE, 1, 0, WORLD);
        else
            MPI_Recv(data + at, each, MPI_DOUBLE, 0, 0, WORLD, MPI_STATUS_IGNORE);
    }
    end();
}
