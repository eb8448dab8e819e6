/* An OpenSHMEM of its own numbering, as one is that does not stand on the program's MPI: all
 * ranks but the first are PEs, from 0 on. */
#include <mpi.h>
#include <stdlib.h>

static MPI_Comm pes = MPI_COMM_NULL;
static int pe, count;

void shmem_init(void)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Group all, others;
    int first = 0;
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Group_excl(all, 1, &first, &others);
    PMPI_Comm_create_group(MPI_COMM_WORLD, others, 7, &pes);
    PMPI_Group_free(&all);
    PMPI_Group_free(&others);
    PMPI_Comm_rank(pes, &pe);
    PMPI_Comm_size(pes, &count);
}

int shmem_my_pe(void) { return pe; }

int shmem_n_pes(void) { return count; }

void shmem_barrier_all(void) { PMPI_Barrier(pes); }

void shmem_finalize(void) { PMPI_Comm_free(&pes); }
