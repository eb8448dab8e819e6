/* One MPI_Waitall for a message and for transfers to a window whose target has to help, and
 * computes: it is charged once, with what it waited for longest. In turns the message comes last,
 * and the target.
 *
 * RUN np=3 env="OMPI_MCA_osc=pt2pt"
 * NOT_WITH mpich because="its shared memory needs no help of the target"
 * EXPECT late_sender at=@wait ranks=1 severity=0.350 instances=5 operation=MPI_Waitall
 *   cause_rank=2 cause_line=@send because="comput"
 * EXPECT wait_for_progress at=@wait ranks=1 severity=0.350 instances=5 operation=MPI_Waitall
 *   cause_rank=0 cause_line=@serve cause_operation=MPI_Recv because="comput" tolerance=0.15
 * EXPECT late_sender+wait_for_progress at=@wait ranks=1 severity=0.700 instances=10 tolerance=0.15
 * SILENT lock_contention below=0.010
 */
#include "common.h"

/* Large enough that the target has to take it. */
enum { PUT = 1 << 16, INTS = PUT + 2 };
enum { SOONER = 40, LATER = 80 };

static int memory[INTS], given[INTS];

int main(int argc, char **argv)
{
    int message = 0, got = 0, done = 1;
    MPI_Win window;
    start(&argc, &argv);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window);
    start_clock();
    for (int round = 0; round < 2 * REPEATS; round++) {
        int is_sent_last = round % 2 == 0;
        MPI_Request requests[3];
        at(round, 0);
        if (rank == 0) {
            MPI_Recv(&done, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE);
            at(round, is_sent_last ? SOONER : LATER);
            MPI_Recv(&done, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE); /* MARK serve */
        } else if (rank == 2) {
            at(round, is_sent_last ? LATER : SOONER);
            MPI_Send(&round, 1, MPI_INT, 1, 1, WORLD); /* MARK send */
        } else {
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
            MPI_Put(given, 1, MPI_INT, 0, INTS - 1, 1, MPI_INT, window);
            MPI_Win_flush(0, window);
            MPI_Send(&done, 1, MPI_INT, 0, 0, WORLD);
            at(round, 10);
            MPI_Irecv(&message, 1, MPI_INT, 2, 1, WORLD, &requests[0]);
            MPI_Rput(given, PUT, MPI_INT, 0, 0, PUT, MPI_INT, window, &requests[1]);
            MPI_Rget(&got, 1, MPI_INT, 0, PUT, 1, MPI_INT, window, &requests[2]);
            MPI_Waitall(3, requests, MPI_STATUSES_IGNORE); /* MARK wait */
            REQUIRE(message == round);
            MPI_Win_unlock(0, window);
            MPI_Send(&done, 1, MPI_INT, 0, 0, WORLD);
        }
    }
    at(2 * REPEATS, 0);
    MPI_Win_free(&window);
    finish(2 * REPEATS + 1, message + got);
}
