/* The root cause is the completion of a non-blocking file operation: rank 0 waits for its write, and
 * the others for rank 0.
 *
 * The program's own aio_error stands before the C library's and lets no write end before DELAY ms of
 * the round are over.
 *
 * RUN np=2 cflags="-rdynamic" libs="-ldl"
 * ROOT io at=@wait ranks=0:0.300
 * METRIC late_sender 0.300
 * SILENT unexplained at=@wait
 */
#include "common.h"
#include <aio.h>
#include <dlfcn.h>
#include <errno.h>

static double not_before;

int aio_error(const struct aiocb *operation)
{
    int (*next)(const struct aiocb *) = (int (*)(const struct aiocb *))dlsym(RTLD_NEXT, "aio_error");
    return now() < not_before ? EINPROGRESS : next(operation);
}

int main(int argc, char **argv)
{
    static char block[1 << 12];
    long sum = 0;
    MPI_File file;
    start(&argc, &argv);
    MPI_File_open(MPI_COMM_SELF, rank == 0 ? "written" : "/dev/null",
                  rank == 0 ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
        int value = round;
        at(round, 0);
        if (rank == 0) {
            MPI_Request request;
            not_before = origin + 1e-3 * schedule_scale * (round * PERIOD + DELAY);
            MPI_File_iwrite_at(file, 0, block, sizeof block, MPI_CHAR, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE); /* MARK wait */
            MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD);
        } else {
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
        }
        REQUIRE(value == round);
        sum += value;
    }
    MPI_File_close(&file);
    finish(REPEATS, sum);
}
