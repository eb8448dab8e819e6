/* Every member of an n-to-n operation waits for the last one.
 *
 * RUN np=4
 * EXPECT wait_at_nxn at=@allreduce ranks=0,1,2 severity=0.360 instances=6 operation=MPI_Allreduce cause_rank=3 cause_line=@allreduce
 * EXPECT wait_at_nxn at=@allgather ranks=0,1,2 severity=0.360 instances=6 operation=MPI_Allgather cause_rank=3 cause_line=@allgather
 * EXPECT wait_at_nxn at=@alltoall ranks=0,1,2 severity=0.360 instances=6 operation=MPI_Alltoall cause_rank=3 cause_line=@alltoall
 * EXPECT wait_at_nxn at=@alltoallv ranks=0,1,2 severity=0.360 instances=6 operation=MPI_Alltoallv cause_rank=3 cause_line=@alltoallv
 * EXPECT wait_at_nxn at=@reduce_scatter ranks=0,1,2 severity=0.360 instances=6 operation=MPI_Reduce_scatter cause_rank=3 cause_line=@reduce_scatter
 * EXPECT wait_at_nxn at=@allgatherv ranks=0,1,2 severity=0.360 instances=6 operation=MPI_Allgatherv cause_rank=3 cause_line=@allgatherv
 * METRIC wait_at_nxn 2.160 abs=0.040
 * SILENT wait_at_barrier
 */
#include "common.h"

enum { STEP = 75 };

int main(int argc, char **argv)
{
    long sum = 0;
    int ones[4] = {1, 1, 1, 1}, places[4] = {0, 1, 2, 3};
    start(&argc, &argv);
    for (int round = 0; round < 12; round++) {
        int in[4] = {rank, rank + 1, rank + 2, rank + 3}, out[4] = {-1, -1, -1, -1};
        at_ms(STEP * round + (rank == 3 ? DELAY : 0));
        switch (round % 6) {
        case 0:
            MPI_Allreduce(in, out, 4, MPI_INT, MPI_SUM, WORLD); /* MARK allreduce */
            REQUIRE(out[0] == 6 && out[3] == 18);
            break;
        case 1:
            MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_INT, WORLD); /* MARK allgather */
            REQUIRE(out[0] == 0 && out[3] == 3);
            break;
        case 2:
            MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, WORLD); /* MARK alltoall */
            REQUIRE(out[0] == rank && out[3] == 3 + rank);
            break;
        case 3:
            MPI_Alltoallv(in, ones, places, MPI_INT, out, ones, places, MPI_INT, WORLD); /* MARK alltoallv */
            REQUIRE(out[0] == rank && out[3] == 3 + rank);
            break;
        case 4:
            MPI_Reduce_scatter(in, out, ones, MPI_INT, MPI_SUM, WORLD); /* MARK reduce_scatter */
            REQUIRE(out[0] == 6 + 4 * rank);
            break;
        default:
            MPI_Allgatherv(in, 1, MPI_INT, out, ones, places, MPI_INT, WORLD); /* MARK allgatherv */
            REQUIRE(out[0] == 0 && out[3] == 3);
        }
        for (int i = 0; i < 4; i++)
            sum = 7 * sum % 1000003 + out[i];
    }
    finish(STEP * 12 / PERIOD + 1, sum);
}
