/* As if every rank were on a host of its own: what a preloaded library beneath the collector can
 * make of a machine. And a tool that sees collectives by the profiling interface. */
#include <mpi.h>

int PMPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
    int rank;
    (void)type, (void)info;
    PMPI_Comm_rank(comm, &rank);
    return PMPI_Comm_split(comm, rank, key, made);
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    return PMPI_Allreduce(in, out, count, type, op, comm);
}
