/* A posted receive that no message arrives for, given up with Request_free.
 *
 * RUN np=2
 * ANOMALY unmatched_receive count=1 detail="tag 9"
 * SILENT late_sender
 * SILENT late_receiver
 */
#include "common.h"

static int never;

int main(int argc, char **argv)
{
    start(&argc, &argv);
    if (rank == 1) {
        MPI_Request request;
        MPI_Irecv(&never, 1, MPI_INT, 0, 9, WORLD, &request);
        MPI_Request_free(&request);
    }
    finish(1, never);
}
