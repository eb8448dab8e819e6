/* Fences of an MPI that makes use of assertions: nothing comes before one with MPI_MODE_NOPRECEDE
 * and nothing behind one with MPI_MODE_NOSUCCEED, so one with both returns at once. Open MPI's and
 * MPICH's wait for all ranks.
 */
#include <mpi.h>

int MPI_Win_fence(int assert, MPI_Win window)
{
    const int both = MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
    if ((assert & both) == both)
        return MPI_SUCCESS;
    return PMPI_Win_fence(assert, window);
}
