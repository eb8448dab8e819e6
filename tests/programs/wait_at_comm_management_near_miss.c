/* All come together, and Comm_create_group concerns only the members of the group: who is not
 * in it keeps nobody waiting.
 *
 * RUN np=4
 * SILENT wait_at_comm_management below=0.030
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    int last[1] = {3};
    MPI_Group everybody, some;
    start(&argc, &argv);
    MPI_Comm_group(WORLD, &everybody);
    MPI_Group_excl(everybody, 1, last, &some);
    for (int round = 0; round < 4; round++) {
        MPI_Comm made = MPI_COMM_NULL;
        int members = 0;
        if (round % 2 == 0) {
            at(round, DELAY);
            MPI_Comm_dup(WORLD, &made);
        } else {
            at(round, rank == 3 ? DELAY : 0);
            if (rank != 3)
                MPI_Comm_create_group(WORLD, some, 5, &made);
        }
        if (made != MPI_COMM_NULL) {
            MPI_Comm_size(made, &members);
            MPI_Comm_free(&made);
        }
        REQUIRE(members == (round % 2 == 0 ? 4 : rank == 3 ? 0 : 3));
        sum += members;
    }
    MPI_Group_free(&some);
    MPI_Group_free(&everybody);
    finish(4, sum);
}
