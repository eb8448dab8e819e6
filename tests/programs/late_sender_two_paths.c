/* Two call paths lead through one wrapper to the same receive; only one of them is slow.
 *
 * RUN np=2
 * EXPECT late_sender at=@recv via=@slow ranks=1 severity=0.300 instances=5 cause_rank=0 cause_line=@send
 * SILENT late_sender at=@recv via=@fast
 * METRIC late_sender 0.300
 */
#include "common.h"

static NOINLINE void send_value(int value)
{
    MPI_Send(&value, 1, MPI_INT, 1, 0, WORLD); /* MARK send */
}

static NOINLINE int receive_value(void)
{
    int value = -1;
    MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE); /* MARK recv */
    return value;
}

static NOINLINE long slow_phase(void)
{
    int value = receive_value(); /* MARK slow */
    return value * 3L;
}

static NOINLINE long fast_phase(void)
{
    int value = receive_value(); /* MARK fast */
    return value * 5L;
}

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        if (rank == 0) {
            at(round, 0);
            send_value(1);
            at(round, 80);
            send_value(2);
        } else {
            long slow, fast;
            at(round, 10);
            fast = fast_phase();
            at(round, 20);
            slow = slow_phase();
            REQUIRE(fast == 5 && slow == 6);
            sum += fast + slow;
        }
    }
    finish(REPEATS, sum);
}
