/* A rank looks for what never comes, gives up and goes on. MPI does not know for whom it waited, so
 * nobody is blamed. Looking now and then while computing is no wait.
 *
 * RUN np=2
 * EXPECT looked_in_vain at=@probe ranks=1:0.060 severity=0.060 operation=MPI_Iprobe
 * EXPECT looked_in_vain at=@test ranks=1:0.060 severity=0.060 operation=MPI_Test
 * METRIC looked_in_vain 0.120
 * SILENT late_sender+late_sender_polled
 * SILENT looked_in_vain at=@driven
 */
#include "common.h"

HELPER void spin_us(double us)
{
    double until = now() + 1e-6 * us;
    while (now() < until) {
    }
}

/* Whether it is not yet `ms` milliseconds after the origin. */
HELPER int is_before_ms(double ms)
{
    return now() < origin + 1e-3 * schedule_scale * ms;
}

int main(int argc, char **argv)
{
    int found = 0, value = 0, i;
    MPI_Request request;
    start(&argc, &argv);
    if (rank == 1) {
        MPI_Irecv(&value, 1, MPI_INT, 0, 8, WORLD, &request);
        at(0, 0);
        while (is_before_ms(DELAY))
            MPI_Iprobe(0, 9, WORLD, &found, MPI_STATUS_IGNORE); /* MARK probe */
        REQUIRE(!found);
        at(1, 0);
        while (is_before_ms(PERIOD + DELAY))
            MPI_Test(&request, &found, MPI_STATUS_IGNORE); /* MARK test */
        REQUIRE(!found);
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (i = 0; i < 20; i++) {
            MPI_Iprobe(0, 9, WORLD, &found, MPI_STATUS_IGNORE); /* MARK driven */
            spin_us(2000);
        }
        REQUIRE(!found);
    }
    finish(3, found);
}
