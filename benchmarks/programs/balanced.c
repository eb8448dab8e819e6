/* Halo exchange in a ring and a residual, as a solver makes them: every rank computes
 * MICROSECONDS in each of STEPS steps. With a PERCENT the last rank computes so much
 * longer.
 *
 * Usage: balanced STEPS MICROSECONDS [PERCENT]
 */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

#define CELLS 1024
static double in[2][CELLS], out[2][CELLS];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static void compute(double microseconds) {
    double end = now() + microseconds;
    while (now() < end)
        ;
}

static void exchange(int before, int after) {
    MPI_Request requests[4];
    MPI_Irecv(in[0], CELLS, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in[1], CELLS, MPI_DOUBLE, after, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(out[0], CELLS, MPI_DOUBLE, before, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(out[1], CELLS, MPI_DOUBLE, after, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    long steps = argc > 1 ? atol(argv[1]) : 100;
    double microseconds = argc > 2 ? atof(argv[2]) : 10000;
    if (argc > 3 && rank == ranks - 1)
        microseconds *= 1 + atof(argv[3]) / 100;
    MPI_Barrier(MPI_COMM_WORLD);
    for (long step = 0; step < steps; step++) {
        compute(microseconds);
        exchange((rank + ranks - 1) % ranks, (rank + 1) % ranks);
        if (step % 10 == 9) {
            double residual = step, sum;
            MPI_Allreduce(&residual, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    return 0;
}
