/* Calls that fail under MPI_ERRORS_RETURN: the codes, their classes and the statuses are
 * printed, and must be the same with the collector. */
#include "../common.h"

static FILE *out;
static char *text;
static size_t text_length;

static void show(const char *what, int code)
{
    int class = -1, length;
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
#ifdef MPICH_VERSION
    /* Its codes number all errors so far, and its texts tell addresses. */
    code = class;
    text[strcspn(text, ",\n")] = 0;
#endif
    fprintf(out, "rank %d: %s: %d %d %s\n", rank, what, code, class, text);
}

static void show_status(const char *what, const MPI_Status *status)
{
    int count = -7, cancelled = -7;
    MPI_Get_count(status, MPI_INT, &count);
    MPI_Test_cancelled(status, &cancelled);
    fprintf(out, "rank %d: %s: source %d tag %d error %d count %d cancelled %d\n", rank, what, status->MPI_SOURCE,
           status->MPI_TAG, status->MPI_ERROR, count, cancelled);
}

/* A status whose every field is known. */
static MPI_Status marked(void)
{
    MPI_Status status;
    memset(&status, 0, sizeof status);
    status.MPI_SOURCE = 771;
    status.MPI_TAG = 772;
    status.MPI_ERROR = 773;
    return status;
}

static void wrong_arguments(void)
{
    int value = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm none = MPI_COMM_NULL, made;
    MPI_File file;
    show("rank", MPI_Send(&value, 1, MPI_INT, 99, 0, WORLD));
    show("tag", MPI_Send(&value, 1, MPI_INT, 0, -5, WORLD));
    show("count", MPI_Send(&value, -1, MPI_INT, 0, 0, WORLD));
    show("type", MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, WORLD));
    show("irecv", MPI_Irecv(&value, 1, MPI_INT, 99, 0, WORLD, &request));
    show("root", MPI_Bcast(&value, 1, MPI_INT, 99, WORLD));
    show("op", MPI_Allreduce(&value, &value, 1, MPI_INT, MPI_OP_NULL, WORLD));
    show("null communicator", MPI_Send(&value, 1, MPI_INT, 0, 0, none));
    show("split", MPI_Comm_split(WORLD, -77, 0, &made));
    show("group", MPI_Comm_create(WORLD, MPI_GROUP_NULL, &made));
    show("wait for nothing", MPI_Wait(NULL, MPI_STATUS_IGNORE));
    show("wait for no array", MPI_Waitall(2, NULL, MPI_STATUSES_IGNORE));
    show("wait for any of none", MPI_Waitany(2, NULL, NULL, MPI_STATUS_IGNORE));
    show("file", MPI_File_open(MPI_COMM_SELF, "/nonexistent/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
}

static void messages(void)
{
    int values[4] = {1, 2, 3, 4}, in[4] = {0, 0, 0, 0};
    MPI_Status status = marked(), statuses[3];
    MPI_Request requests[3];
    if (rank == 0) {
        for (int tag = 0; tag < 6; tag++)
            MPI_Send(values, 4, MPI_INT, 1, tag, WORLD);
        return;
    }
    show("fits", MPI_Recv(in, 4, MPI_INT, 0, 0, WORLD, &status));
    show_status("fits", &status);
    status = marked();
    show("truncated", MPI_Recv(in, 2, MPI_INT, 0, 1, WORLD, &status));
    show_status("truncated", &status);
    show("truncated, ignored", MPI_Recv(in, 2, MPI_INT, MPI_ANY_SOURCE, 2, WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < 3; i++) {
        statuses[i] = marked();
        MPI_Irecv(in, i == 1 ? 2 : 4, MPI_INT, MPI_ANY_SOURCE, 3 + i, WORLD, &requests[i]);
    }
    show("waitall", MPI_Waitall(3, requests, statuses));
    for (int i = 0; i < 3; i++)
        show_status("waitall", &statuses[i]);
}

/* Whether a request is still there. */
static void show_requests(const char *what, const MPI_Request *requests, int count)
{
    for (int i = 0; i < count; i++)
        fprintf(out, "rank %d: %s: request %d is %s\n", rank, what, i, requests[i] == MPI_REQUEST_NULL ? "null" : "kept");
}

/* What a user's error handler is called with. */
static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    show("handler", *code);
}

enum { ALL, TESTALL, SOME, TESTSOME, ANY, TESTANY, ONE, TEST, WAYS };

/* One receive that fits and one that is too short, completed in each way, with and without
 * statuses, under MPI_ERRORS_RETURN and under a user's error handler. */
static void truncated_requests(int count, int ignored)
{
    static const char *names[WAYS] = {"waitall", "testall", "waitsome", "testsome", "waitany", "testany", "wait", "test"};
    int values[4] = {1, 2, 3, 4}, in[2][4];
    for (int way = 0; way < WAYS; way++) {
        int flag = 77, done = 77, index = 77, indices[2] = {77, 77}, code = MPI_SUCCESS;
        MPI_Status statuses[2] = {marked(), marked()};
        MPI_Status *all = ignored ? MPI_STATUSES_IGNORE : statuses, *one = ignored ? MPI_STATUS_IGNORE : statuses;
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        if (rank == 0) {
            MPI_Barrier(WORLD);
            for (int i = 0; i < count; i++)
                MPI_Send(values, 4, MPI_INT, 1, 20 + i, WORLD);
            MPI_Barrier(WORLD);
            continue;
        }
        for (int i = 0; i < count; i++)
            MPI_Irecv(in[i], i == count - 1 ? 2 : 4, MPI_INT, MPI_ANY_SOURCE, 20 + i, WORLD, &requests[i]);
        MPI_Barrier(WORLD);
        /* Everything has arrived, so that the tests find it. */
        MPI_Barrier(WORLD);
        switch (way) {
        case ALL: code = MPI_Waitall(count, requests, all); break;
        case TESTALL: code = MPI_Testall(count, requests, &flag, all); break;
        case SOME: code = MPI_Waitsome(count, requests, &done, indices, all); break;
        case TESTSOME: code = MPI_Testsome(count, requests, &done, indices, all); break;
        case ANY: code = MPI_Waitany(count, requests, &index, one); break;
        case TESTANY: code = MPI_Testany(count, requests, &index, &flag, one); break;
        case ONE: code = MPI_Wait(&requests[count - 1], one); break;
        case TEST: code = MPI_Test(&requests[count - 1], &flag, one); break;
        }
        show(names[way], code);
        fprintf(out, "rank %d: flag %d done %d index %d indices %d %d\n", rank, flag, done, index, indices[0], indices[1]);
        for (int i = 0; i < count; i++)
            show_status(names[way], &statuses[i]);
        show_requests(names[way], requests, count);
        for (int i = 0; i < count; i++)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
}

/* Calls with nothing to do leave their outputs in a defined state. */
static void nothing_to_do(void)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[2] = {marked(), marked()};
    int index = 77, count = 77, flag = 77, indices[2] = {77, 77};
    show("wait", MPI_Wait(&requests[0], &statuses[0]));
    show_status("wait", &statuses[0]);
    statuses[0] = marked();
    show("waitany", MPI_Waitany(2, requests, &index, &statuses[0]));
    show_status("waitany", &statuses[0]);
    fprintf(out, "rank %d: index %d\n", rank, index);
    statuses[0] = marked();
    show("waitsome", MPI_Waitsome(2, requests, &count, indices, statuses));
    show_status("waitsome", &statuses[0]);
    fprintf(out, "rank %d: count %d\n", rank, count);
    show("testall", MPI_Testall(2, requests, &flag, statuses));
    fprintf(out, "rank %d: flag %d\n", rank, flag);
    show("waitall of none", MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
}

/* Rank 0 prints what both noted, and nobody else anything: mpirun mixes lines that two ranks write
 * at the same time. */
static void print_all(void)
{
    fclose(out);
    if (rank == 0) {
        MPI_Status status;
        int length;
        MPI_Probe(1, 99, WORLD, &status);
        MPI_Get_count(&status, MPI_CHAR, &length);
        char *theirs = malloc(length);
        MPI_Recv(theirs, length, MPI_CHAR, 1, 99, WORLD, MPI_STATUS_IGNORE);
        printf("%s%s", text, theirs);
    } else {
        MPI_Send(text, (int)text_length + 1, MPI_CHAR, 0, 99, WORLD);
    }
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    out = open_memstream(&text, &text_length);
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    wrong_arguments();
    MPI_Barrier(WORLD);
    messages();
    nothing_to_do();
    for (int case_ = 0; case_ < 8; case_++) {
        MPI_Errhandler handlers[2] = {MPI_ERRORS_RETURN};
        MPI_Comm_create_errhandler(handler, &handlers[1]);
        MPI_Comm_set_errhandler(WORLD, handlers[case_ / 4]);
        truncated_requests(1 + case_ % 2, case_ / 2 % 2);
        MPI_Errhandler_free(&handlers[1]);
    }
    print_all();
    at(1, 0);
    if (rank == 0)
        result(0);
    MPI_Finalize();
}
