/* A message a little above the library's eager limit waits for its receive, which rank 1 posts once
 * it has another of rank 2; a smaller one, of float instead of double, does not, since rank 1 is in
 * MPI meanwhile.
 *
 * AS_LATE: rank 2 computes so long that all wait for it anyway. NEEDS_NEXT: rank 0 then needs a
 * message that comes no earlier. AWAY: rank 1 computes instead, and a smaller message, too, waits
 * until it is in MPI again. Nothing is gained in any of them.
 */
#include "hints.h"

#ifdef MPICH_VERSION
enum { COUNT = 1600 };
#else
enum { COUNT = 800 };
#endif

int main(int argc, char **argv)
{
    double large[COUNT] = {0};
    float small[COUNT] = {0};
    void *data = FLAWED ? (void *)large : (void *)small;
    MPI_Datatype type = FLAWED ? MPI_DOUBLE : MPI_FLOAT;
    begin(&argc, &argv);
    for (int round = 0; round < 12; round++) {
        if (rank == 0) {
            MPI_Send(data, COUNT, type, 1, 0, WORLD);
#ifdef NEEDS_NEXT
            hear(2);
#endif
            work(10);
        } else if (rank == 2) {
            work(10);
#ifndef AWAY
            tell(1);
#endif
#if defined AS_LATE || defined NEEDS_NEXT
            work(10);
#endif
#ifdef NEEDS_NEXT
            tell(0);
#endif
        } else {
#ifdef AWAY
            work(10);
#else
            hear(2);
#endif
            MPI_Recv(data, COUNT, type, 0, 0, WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Barrier(WORLD);
    }
    end();
}
