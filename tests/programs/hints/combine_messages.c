/* Rank 0 sends rank 1 an array element by element, or at once.
 *
 * COMPUTED: what takes the time is to compute the elements.
 */
#include "hints.h"

#ifdef COMPUTED
enum { COUNT = 5000 };
#else
enum { COUNT = 400000 };
#endif
static double data[COUNT];

int main(int argc, char **argv)
{
    int each = FLAWED ? 1 : COUNT;
    begin(&argc, &argv);
    for (int at = 0; at < COUNT; at += each) {
#ifdef COMPUTED
        for (double until = now() + 20e-6 * each; rank == 0 && now() < until;) {
        }
#endif
        if (rank == 0)
            MPI_Send(data + at, each, MPI_DOUBLE, 1, 0, WORLD);
        else
            MPI_Recv(data + at, each, MPI_DOUBLE, 0, 0, WORLD, MPI_STATUS_IGNORE);
    }
    end();
}
