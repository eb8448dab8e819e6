/* Every completing call with its status ignored, on wildcard receives: the collector needs
 * statuses of its own, the program must not notice. Nobody waits for long. */
#include "../common.h"

enum { KINDS = 10 };

static long receive(int kind)
{
    int value = -1, flag = 0, index = -1, count = 0, indices[1] = {-1};
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Message message;
    if (kind >= 2 && kind <= 8)
        MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &request);
    switch (kind) {
    case 0: MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, MPI_STATUS_IGNORE); break;
    case 1:
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        break;
    case 2: MPI_Wait(&request, MPI_STATUS_IGNORE); break;
    case 3: MPI_Waitall(1, &request, MPI_STATUSES_IGNORE); break;
    case 4:
        MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
        REQUIRE(index == 0);
        break;
    case 5:
        MPI_Waitsome(1, &request, &count, indices, MPI_STATUSES_IGNORE);
        REQUIRE(count == 1 && indices[0] == 0);
        break;
    case 6:
        while (!flag)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        break;
    case 7:
        while (!flag)
            MPI_Testall(1, &request, &flag, MPI_STATUSES_IGNORE);
        break;
    case 8:
        while (count != 1)
            MPI_Testsome(1, &request, &count, indices, MPI_STATUSES_IGNORE);
        break;
    default:
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, &value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD,
                     MPI_STATUS_IGNORE);
    }
    REQUIRE(request == MPI_REQUEST_NULL);
    return value;
}

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int i = 0; i < 10 * KINDS; i++) {
        if (rank == 0) {
            MPI_Ssend(&i, 1, MPI_INT, 1, i, WORLD);
        } else {
            long value = receive(i % KINDS);
            REQUIRE(value == i);
            sum += value;
        }
    }
    finish(1, sum);
}
