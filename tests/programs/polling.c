/* A rank looks for what never comes. MPI does not know for whom, so nobody is blamed, but the
 * report says that it was so. Looking now and then while computing is no wait.
 *
 * RUN np=2
 * SILENT late_sender+late_sender_polled
 * ANOMALY polling count=300000 detail="MPI_Iprobe at polling.c:"
 */
#include "common.h"

HELPER void spin_us(double us)
{
    double until = now() + 1e-6 * us;
    while (now() < until) {
    }
}

int main(int argc, char **argv)
{
    int found = 0, i;
    start(&argc, &argv);
    if (rank == 1) {
        for (i = 0; i < 300000; i++)
            MPI_Iprobe(0, 9, WORLD, &found, MPI_STATUS_IGNORE);
        for (i = 0; i < 20; i++) {
            MPI_Iprobe(0, 9, WORLD, &found, MPI_STATUS_IGNORE);
            spin_us(2000);
        }
        REQUIRE(!found);
    }
    finish(3, found);
}
