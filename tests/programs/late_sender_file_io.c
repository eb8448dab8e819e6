/* The sender is late because its file system is slow: the cause is its MPI-IO call.
 *
 * The program's own write functions stand before the C library's and make every
 * write to the test file take DELAY ms.
 *
 * RUN np=2 cflags="-rdynamic" libs="-ldl"
 * EXPECT late_sender at=@recv ranks=1 severity=0.300 instances=5 cause_rank=0 cause_line=@send
 *   because="file"
 * METRIC late_sender 0.300
 * SILENT late_receiver
 */
#include "common.h"
#include <dlfcn.h>
#include <sys/uio.h>

static int slow;

static void dawdle(void)
{
    if (slow) {
        slow = 0; /* once, however many writes the library makes of one call */
        pass_ms(DELAY);
    }
}

ssize_t write(int fd, const void *data, size_t bytes)
{
    ssize_t (*next)(int, const void *, size_t) = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (fd > 2)
        dawdle();
    return next(fd, data, bytes);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    ssize_t (*next)(int, const void *, size_t, off_t) =
        (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
    dawdle();
    return next(fd, data, bytes, offset);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    ssize_t (*next)(int, const struct iovec *, int, off_t) =
        (ssize_t(*)(int, const struct iovec *, int, off_t))dlsym(RTLD_NEXT, "pwritev");
    dawdle();
    return next(fd, parts, count, offset);
}

int main(int argc, char **argv)
{
    long sum = 0;
    MPI_File file;
    start(&argc, &argv);
    MPI_File_open(MPI_COMM_SELF, rank == 0 ? "slow.dat" : "idle.dat",
                  MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
        int value = round, back = -1;
        at(round, 0);
        if (rank == 0) {
            slow = 1;
            MPI_File_write_at(file, 4 * round, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
            REQUIRE(slow == 0);
            MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD); /* MARK send */
            MPI_File_read_at(file, 4 * round, &back, 1, MPI_INT, MPI_STATUS_IGNORE);
            REQUIRE(back == round);
        } else {
            MPI_Recv(&back, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK recv */
            REQUIRE(back == round);
        }
        sum += back;
    }
    MPI_File_close(&file);
    finish(REPEATS, sum);
}
