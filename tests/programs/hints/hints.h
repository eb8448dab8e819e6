/* Shared by the programs with which rules for hints are tested. Each is compiled twice: as it
 * is it has the flaw that the rule of its name is about, with MENDED it does what the hint says.
 * Work is sleeping, so that no program needs more cores than there are. Rank 0 prints how long
 * the rounds took, which does not include the start of MPI.
 */
#ifndef LAGGARD_TEST_HINTS_H
#define LAGGARD_TEST_HINTS_H

#include "../common.h"

#ifdef MENDED
enum { FLAWED = 0 };
#else
enum { FLAWED = 1 };
#endif

static double began;

/* Computes for so many milliseconds. */
HELPER void work(double ms) { pass_ms(ms); }

HELPER void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    MPI_Barrier(WORLD);
    began = now();
}

HELPER void end(void)
{
    MPI_Barrier(WORLD);
    if (rank == 0)
        printf("elapsed %.6f\n", now() - began);
    MPI_Finalize();
}

/* Tells another rank that it may go on, or waits for that. */
HELPER void tell(int other) { MPI_Send(NULL, 0, MPI_BYTE, other, 99, WORLD); }
HELPER void hear(int other) { MPI_Recv(NULL, 0, MPI_BYTE, other, 99, WORLD, MPI_STATUS_IGNORE); }

#endif
