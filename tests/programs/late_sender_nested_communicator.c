/* Communicators made while another call makes one, in an attribute's copy callback: each has an
 * identity of its own, in whatever order the ranks use them, and gives it back when the delete
 * callback frees it.
 *
 * RUN np=2
 * EXPECT late_sender_wrong_order_same_source at=@second ranks=1 severity=0.180 instances=3 operation=MPI_Recv
 *   cause_rank=0 cause_line=@late_send
 * EXPECT late_sender at=@third ranks=1 severity=0.060 instances=3 operation=MPI_Recv
 *   cause_rank=0 cause_line=@last_send
 * METRIC late_sender 0.060
 */
#include "common.h"

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    MPI_Comm *inner = malloc(sizeof *inner);
    (void)comm, (void)key, (void)extra;
    MPI_Comm_dup(*(MPI_Comm *)in, inner);
    *(MPI_Comm **)out = inner;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    MPI_Comm_free(value);
    free(value);
    return MPI_SUCCESS;
}

static MPI_Comm inner_of(MPI_Comm comm, int key)
{
    MPI_Comm *inner;
    int found;
    MPI_Comm_get_attr(comm, key, &inner, &found);
    REQUIRE(found);
    return *inner;
}

int main(int argc, char **argv)
{
    int key, in = -1;
    long sum = 0;
    MPI_Comm base, one, two, three, *first = malloc(sizeof *first);
    start(&argc, &argv);
    MPI_Comm_create_keyval(copy, delete, &key, NULL);
    MPI_Comm_dup(WORLD, &base);
    MPI_Comm_dup(WORLD, first);
    MPI_Comm_set_attr(base, key, first);
    for (int round = 0; round < 3; round++) {
        at(3 * round, 0);
        MPI_Comm_dup(base, &one);
        MPI_Comm_dup(base, &two);
        at(3 * round + 1, 0);
        if (rank == 0) {
            MPI_Send(&round, 1, MPI_INT, 1, 0, inner_of(one, key));
            at(3 * round + 1, 60);
            MPI_Send(&round, 1, MPI_INT, 1, 0, inner_of(two, key)); /* MARK late_send */
        } else {
            MPI_Recv(&in, 1, MPI_INT, 0, 0, inner_of(two, key), MPI_STATUS_IGNORE); /* MARK second */
            MPI_Recv(&in, 1, MPI_INT, 0, 0, inner_of(one, key), MPI_STATUS_IGNORE);
            sum += in;
        }
        MPI_Comm_free(&one);
        MPI_Comm_free(&two);
        MPI_Comm_dup(WORLD, &three);
        at(3 * round + 2, 0);
        if (rank == 0) {
            at(3 * round + 2, 20);
            MPI_Send(&round, 1, MPI_INT, 1, 0, three); /* MARK last_send */
        } else {
            MPI_Recv(&in, 1, MPI_INT, 0, 0, three, MPI_STATUS_IGNORE); /* MARK third */
            sum += in;
        }
        MPI_Comm_free(&three);
    }
    MPI_Comm_free(&base);
    finish(9, sum);
}
