/* Three ranks wait in a barrier for the fourth.
 *
 * RUN np=4
 * EXPECT wait_at_barrier at=@barrier ranks=0:0.300,1:0.300,2:0.300 severity=0.900 instances=15
 *   operation=MPI_Barrier cause_rank=3 cause_line=@barrier because="comput"
 * METRIC wait_at_barrier 0.900
 * SILENT wait_at_nxn below=0.040
 */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        at(round, rank == 3 ? DELAY : 0);
        MPI_Barrier(WORLD); /* MARK barrier */
    }
    finish(REPEATS, rank);
}
