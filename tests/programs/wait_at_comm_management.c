/* Making communicators is collective: all wait for the last member.
 *
 * RUN np=4
 * EXPECT wait_at_comm_management at=@dup ranks=0,1,2 severity=0.360 operation=MPI_Comm_dup cause_rank=3 cause_line=@dup
 * EXPECT wait_at_comm_management at=@split ranks=0,1,2 severity=0.360 operation=MPI_Comm_split cause_rank=3 cause_line=@split
 * EXPECT wait_at_comm_management at=@create ranks=0,1,2 severity=0.360 operation=MPI_Comm_create cause_rank=3 cause_line=@create
 * EXPECT wait_at_comm_management at=@cart ranks=0,1,2 severity=0.360 operation=MPI_Cart_create cause_rank=3 cause_line=@cart
 * METRIC wait_at_comm_management 1.440
 * SILENT wait_at_barrier
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    int sides[1] = {4}, periodic[1] = {1};
    MPI_Group everybody;
    start(&argc, &argv);
    MPI_Comm_group(WORLD, &everybody);
    for (int round = 0; round < 8; round++) {
        MPI_Comm made;
        int members;
        at(round, rank == 3 ? DELAY : 0);
        switch (round % 4) {
        case 0: MPI_Comm_dup(WORLD, &made); break; /* MARK dup */
        case 1: MPI_Comm_split(WORLD, 0, rank, &made); break; /* MARK split */
        case 2: MPI_Comm_create(WORLD, everybody, &made); break; /* MARK create */
        default: MPI_Cart_create(WORLD, 1, sides, periodic, 0, &made); /* MARK cart */
        }
        MPI_Comm_size(made, &members);
        REQUIRE(members == 4);
        sum += members;
        MPI_Comm_free(&made);
    }
    MPI_Group_free(&everybody);
    finish(8, sum);
}
