/* A message a little above the library's eager limit waits for its receive; a smaller one, of
 * float instead of double, only until the receiver looks after other messages, as it does every
 * millisecond.
 *
 * AS_LATE: rank 2 computes so long that all wait for it anyway. NEEDS_NEXT: rank 0 then needs a
 * message that comes no earlier. Nothing is gained in either.
 */
#include "hints.h"

#ifdef MPICH_VERSION
enum { COUNT = 1600 };
#else
enum { COUNT = 800 };
#endif

static void work_and_look(int ms)
{
    for (int past = 0; past < ms; past++) {
        int found;
        work(1);
        MPI_Iprobe(0, 98, WORLD, &found, MPI_STATUS_IGNORE);
        REQUIRE(!found);
    }
}

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
            work(20);
#ifdef NEEDS_NEXT
            tell(0);
#endif
        } else {
            work_and_look(10);
            MPI_Recv(data, COUNT, type, 0, 0, WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Barrier(WORLD);
    }
    end();
}
