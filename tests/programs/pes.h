/* Shared by the test programs of OpenSHMEM: the schedule of common.h for PEs.
 *
 * Open MPI's OpenSHMEM stands on its MPI, whose functions serve to end a program whose results
 * are wrong, and to serve others. The programs run with
 *
 *     libs="-loshmem" env="OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"
 *
 * of which the second keeps shmem_finalize of Open MPI 4.1.4 from failing on Debian 12.
 */
#ifndef LAGGARD_TEST_PES_H
#define LAGGARD_TEST_PES_H

#include "common.h"
#include <shmem.h>

/* The first is start_pes_clock()'s. */
static long pes_sync[4][SHMEM_SYNC_SIZE];
static double pes_mine, pes_latest, pes_work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];

/* The same functions for what is not recorded. */
void pshmem_barrier_all(void);
void pshmem_quiet(void);

/* Agrees on the origin of the schedule. */
HELPER void start_pes_clock(void)
{
    rank = shmem_my_pe();
    size = shmem_n_pes();
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
        for (int which = 0; which < 4; which++)
            pes_sync[which][i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    pes_mine = now();
    shmem_double_max_to_all(&pes_latest, &pes_mine, 1, 0, 0, size, pes_work, pes_sync[0]);
    origin = pes_latest + 0.02;
}

HELPER void start_shmem(void)
{
    shmem_init();
    start_pes_clock();
}

/* Sees to what others do to this PE's memory by atomics, of which locks are made, until `flag`
 * is set: in Open MPI 4.1.4 they go on only while the PE is inside a library that looks for them.
 */
HELPER void serve_until(volatile long *flag)
{
    while (*flag == 0) {
        int found;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &found, MPI_STATUS_IGNORE);
        usleep(200);
    }
}

/* Ends at the same time on all PEs, so that nobody waits in shmem_finalize. */
HELPER void finish_shmem(int rounds, long checksum)
{
    at(rounds, 0);
    result(checksum);
    shmem_finalize();
}

#endif
