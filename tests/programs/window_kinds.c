/* Windows whose memory is attached later, and windows of shared memory: all wait for the last
 * member that makes one, and for locks, whether memory is reached by MPI_Put or directly.
 *
 * RUN np=3
 * NOT_WITH mpich because="MPI_Win_lock returns without the lock; MPI_Win_unlock waits for it"
 * EXPECT wait_at_window_create at=@dynamic ranks=0,1 severity=0.120
 *   operation=MPI_Win_create_dynamic cause_rank=2 cause_line=@dynamic
 * EXPECT wait_at_window_create at=@shared ranks=0,1 severity=0.120
 *   operation=MPI_Win_allocate_shared cause_rank=2 cause_line=@shared
 * EXPECT lock_contention at=@put ranks=2 severity=0.150 instances=3 operation=MPI_Win_lock
 *   cause_rank=1 cause_line=@release cause_operation=MPI_Win_unlock because="comput" tolerance=0.15
 * EXPECT lock_contention at=@store ranks=2 severity=0.150 instances=3 operation=MPI_Win_lock
 *   cause_rank=1 cause_line=@give cause_operation=MPI_Win_unlock because="comput" tolerance=0.15
 * EXPECT wait_at_fence_sync at=@fence ranks=1,2 severity=0.120 operation=MPI_Win_fence
 *   cause_rank=0 cause_line=@fence
 * METRIC lock_contention 0.300 tolerance=0.15
 * METRIC wait_at_window_create 0.240
 * SILENT wait_for_progress below=0.010
 */
#include "common.h"

enum { ROUNDS = 3 };

int main(int argc, char **argv)
{
    int attached[4] = {0}, value = 7, disp_unit, *own, *theirs;
    MPI_Aint address, bytes;
    MPI_Win dynamic, shared;
    start(&argc, &argv);
    at(0, rank == 2 ? DELAY : 0);
    MPI_Win_create_dynamic(MPI_INFO_NULL, WORLD, &dynamic); /* MARK dynamic */
    at(1, rank == 2 ? DELAY : 0);
    MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, WORLD, &own, &shared); /* MARK shared */
    MPI_Win_shared_query(shared, 0, &bytes, &disp_unit, &theirs);
    *own = 0;
    MPI_Win_attach(dynamic, attached, sizeof attached);
    MPI_Get_address(attached, &address);
    MPI_Bcast(&address, 1, MPI_AINT, 0, WORLD);
    start_clock();
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 1) {
            at(2 * round, 0);
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, dynamic);
            MPI_Put(&value, 1, MPI_INT, 0, address, 1, MPI_INT, dynamic);
            at(2 * round, 60);
            MPI_Win_unlock(0, dynamic); /* MARK release */
            at(2 * round, 90);
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, shared);
            *theirs += 1;
            at(2 * round, 150);
            MPI_Win_unlock(0, shared); /* MARK give */
        } else if (rank == 2) {
            at(2 * round, 10);
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, dynamic); /* MARK put */
            MPI_Put(&value, 1, MPI_INT, 0, address, 1, MPI_INT, dynamic);
            MPI_Win_unlock(0, dynamic);
            at(2 * round, 100);
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, shared); /* MARK store */
            REQUIRE(*theirs >= 0 && *theirs <= ROUNDS);
            MPI_Win_unlock(0, shared);
        }
    }
    for (int round = 2 * ROUNDS; round < 2 * ROUNDS + 2; round++) {
        at(round, rank == 0 && round % 2 ? DELAY : 0);
        if (round % 2)
            MPI_Win_fence(0, shared); /* MARK fence */
        else
            MPI_Win_fence(0, shared);
    }
    at(2 * ROUNDS + 2, 0);
    REQUIRE(rank != 0 || (attached[0] == 7 && *own == ROUNDS));
    MPI_Win_detach(dynamic, attached);
    MPI_Win_free(&shared);
    MPI_Win_free(&dynamic);
    finish(2 * ROUNDS + 3, value);
}
