/* Messages of which both ends are there, over a network that needs both ranks to be inside MPI:
 * rank 0 begins its part, computes outside of MPI, and rank 1 goes on when it is back.
 *
 * RUN np=2 env="OMPI_MCA_btl=tcp,self"
 * NOT_WITH mpich because="its receivers fetch most of these messages by themselves"
 * EXPECT wait_for_progress at=@recv operation=MPI_Recv ranks=1 severity=0.290 cause_rank=0
 *   cause_operation=MPI_Wait because="comput" tolerance=0.15
 * EXPECT wait_for_progress at=@send operation=MPI_Send ranks=1 severity=0.290 cause_rank=0
 *   cause_operation=MPI_Wait because="comput" tolerance=0.15
 * EXPECT wait_for_progress at=@all operation=MPI_Waitall ranks=1 severity=0.290 cause_rank=0
 *   cause_operation=MPI_Wait because="comput" tolerance=0.15
 * METRIC wait_for_progress 0.880 tolerance=0.15
 * SILENT late_sender+late_receiver below=0.030
 */
#include "common.h"

enum { BYTES = 4 << 20 };

static char from[BYTES], to[BYTES];

int main(int argc, char **argv)
{
    MPI_Request request, both[2];
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        at(round, 0);
        if (rank == 0) {
            MPI_Isend(from, BYTES, MPI_CHAR, 1, 0, WORLD, &request);
            at(round, DELAY);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(to, BYTES, MPI_CHAR, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK recv */
        }
    }
    for (int round = REPEATS; round < 2 * REPEATS; round++) {
        at(round, 0);
        if (rank == 0) {
            MPI_Irecv(to, BYTES, MPI_CHAR, 1, 0, WORLD, &request);
            at(round, DELAY);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            at(round, 2);
            MPI_Send(from, BYTES, MPI_CHAR, 0, 0, WORLD); /* MARK send */
        }
    }
    for (int round = 2 * REPEATS; round < 3 * REPEATS; round++) {
        at(round, 0);
        if (rank == 0) {
            MPI_Isend(from, 1, MPI_CHAR, 1, 1, WORLD, &both[0]);
            MPI_Irecv(to, BYTES, MPI_CHAR, 1, 0, WORLD, &request);
            at(round, DELAY);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Wait(&both[0], MPI_STATUS_IGNORE);
        } else {
            at(round, 2);
            MPI_Irecv(to, 1, MPI_CHAR, 0, 1, WORLD, &both[0]);
            MPI_Isend(from, BYTES, MPI_CHAR, 0, 0, WORLD, &both[1]);
            MPI_Waitall(2, both, MPI_STATUSES_IGNORE); /* MARK all */
        }
    }
    finish(3 * REPEATS, to[BYTES - 1]);
}
