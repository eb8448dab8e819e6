/* One rank has more to do at the end: the others wait for it in MPI_Finalize.
 *
 * RUN np=4
 * EXPECT wait_at_finalize at=@finalize ranks=0,1,3 severity=0.900 instances=3 operation=MPI_Finalize
 *   cause_rank=2 cause_line=@finalize
 * METRIC wait_at_finalize 0.900
 */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    at_ms(rank == 2 ? 320 : 20);
    result(rank);
    MPI_Finalize(); /* MARK finalize */
    return 0;
}
