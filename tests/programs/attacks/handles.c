/* Handles of all kinds, as arguments in registers and behind six others, in arrays, as results
 * and converted to Fortran's and back. */
#include <mpi.h>
#include <stdio.h>

static int check(int is_right, const char *what, int rank)
{
    if (!is_right)
        printf("rank %d: wrong %s\n", rank, what);
    return is_right;
}

int main(int argc, char **argv)
{
    int rank, size, sum = 0, right = 1;
    MPI_Comm copy, half;
    MPI_Datatype pair;
    MPI_Group group;
    MPI_Info info;
    MPI_Op op = MPI_SUM;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(copy, rank % 2, rank, &half);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);

    /* The communicator is the eleventh argument. */
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    int out[2] = {rank, -rank}, in[2] = {-1, -1};
    MPI_Status status;
    MPI_Sendrecv(out, 1, pair, to, 7, in, 1, pair, from, 7, copy, &status);
    right &= check(in[0] == from && in[1] == -from && status.MPI_SOURCE == from, "neighbour", rank);

    MPI_Request requests[2];
    in[0] = in[1] = -1;
    MPI_Irecv(in, 1, pair, from, 8, copy, &requests[0]);
    MPI_Isend(out, 1, pair, to, 8, copy, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    right &= check(in[0] == from && requests[0] == MPI_REQUEST_NULL, "request", rank);

    MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    int counts[4] = {1, 1, 1, 1}, places[4] = {0, 4, 8, 12}, gives[4], takes[4] = {-1, -1, -1, -1};
    for (int i = 0; i < 4; i++)
        gives[i] = 10 * rank + i;
    MPI_Alltoallw(gives, counts, places, types, takes, counts, places, types, copy);
    for (int i = 0; i < 4; i++)
        right &= check(takes[i] == 10 * i + rank, "block", rank);

    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_Op_f2c(MPI_Op_c2f(op)), half);
    right &= check(sum == (rank % 2 ? 4 : 2), "sum", rank);
    right &= check(MPI_Comm_f2c(MPI_Comm_c2f(half)) == half, "communicator", rank);
    right &= check(MPI_Type_f2c(MPI_Type_c2f(pair)) == pair, "datatype", rank);

    MPI_Comm_group(half, &group);
    int members;
    MPI_Group_size(group, &members);
    right &= check(members == 2, "group", rank);
    MPI_Group_free(&group);

    int memory = rank;
    MPI_Info_create(&info);
    MPI_Win_create(&memory, sizeof memory, sizeof memory, info, copy, &window);
    MPI_Win_fence(0, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_Info_free(&info);

    MPI_Type_free(&pair);
    MPI_Comm_free(&half);
    MPI_Comm_free(&copy);
    MPI_Finalize();
    printf("rank %d: %s\n", rank, right ? "all right" : "wrong");
    return !right;
}
