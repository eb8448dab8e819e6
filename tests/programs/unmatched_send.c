/* A small message that nobody receives: said as an anomaly, and no deadlock of the analysis.
 *
 * RUN np=2
 * ANOMALY unmatched_send count=1 detail="tag 7"
 * EXPECT late_sender at=@recv ranks=1 severity=0.060 instances=1 cause_rank=0 cause_line=@send
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    char text[64] = "nobody reads this";
    start(&argc, &argv);
    if (rank == 0) {
        at_ms(5);
        MPI_Send(text, sizeof text, MPI_CHAR, 1, 7, WORLD);
        at_ms(70);
        MPI_Send(text, sizeof text, MPI_CHAR, 1, 8, WORLD); /* MARK send */
    } else {
        char got[64] = "";
        at_ms(10);
        MPI_Recv(got, sizeof got, MPI_CHAR, 0, 8, WORLD, MPI_STATUS_IGNORE); /* MARK recv */
        REQUIRE(strcmp(got, text) == 0);
        sum = strlen(got);
    }
    finish(1, sum);
}
