/* Every call of the table with a null or a wild pointer in each place, one after the other:
 * `arguments FROM TO` prints how those with the numbers from FROM to TO - 1 end. `rows.h` has a
 * function for each row, made from the table by the test.
 *
 * A call may end in a signal, which is how it ends without the collector as well. What is left
 * of the library then is as good in both runs, and the test looks again where they differ, each
 * call in a process of its own. */
#define _GNU_SOURCE
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { NOTHING = -1, ALL = -2 };
enum { OUTGOING = 1, INCOMING = 0, NOT_AN_ERROR_CODE = -1 };
/* A call that does not return uses the processor, or sleeps. */
enum { PATIENCE_US = 50000, SLEEP_US = 500000 };

/* What is put where. */
static int place;
static intptr_t bad;

/* An argument: what belongs there, or what is put there. */
#define ARGUMENT(number, type, good) (place == (number) || place == ALL ? (type)bad : (type)(good))

static _Alignas(64) char buffers[8][1 << 16];
static int zeros[64], ones[64], integers[16][64];
static MPI_Datatype types[64];
static MPI_Info infos[64];
static MPI_Aint addresses[16][64];
static MPI_Status statuses[64];
static MPI_Request requests[64];
static MPI_Comm comm, cart, graph, dist_graph, new_comm;
static MPI_Group group, new_group;
static MPI_Win win, new_win;
static MPI_File file, new_file;
static MPI_Message message;
static MPI_Request request;
static MPI_Datatype new_type;
static MPI_Errhandler new_errhandler;
static MPI_Info new_info;
static MPI_Op new_op;
static MPI_Count number;
static MPI_Offset offset;
static char file_name[] = "file";
static char name[MPI_MAX_LIBRARY_VERSION_STRING + 4096] = "scratch";

static void sum(void *in, void *out, int *length, MPI_Datatype *type)
{
    (void)in, (void)out, (void)length, (void)type;
}

/* What a call needs so that it can succeed: something to free, to receive, to complete. */
struct row {
    const char *name;
    int (*call)(void);
    int places;
    /* Whether it receives, sends, receives what a probe took, completes, starts, frees, and
     * whether it is a transfer within an epoch. */
    int receives, sends, takes, completes, starts, frees, transfers;
};

static void prepare(const struct row *row)
{
    static int incoming;
    if (row->receives || row->takes)
        MPI_Send(&incoming, 1, MPI_INT, 0, INCOMING, comm);
    if (row->takes) {
        message = MPI_MESSAGE_NULL;
        MPI_Mprobe(0, INCOMING, comm, &message, MPI_STATUS_IGNORE);
    }
    if (row->sends)
        MPI_Irecv(&incoming, 1, MPI_INT, 0, OUTGOING, comm, &requests[1]);
    for (int i = 0; i < 64; i++)
        requests[i] = MPI_REQUEST_NULL;
    if (row->completes) {
        MPI_Irecv(&incoming, 1, MPI_INT, 0, 2, comm, &requests[0]);
        MPI_Send(&incoming, 1, MPI_INT, 0, 2, comm);
    }
    if (row->transfers)
        MPI_Win_lock_all(0, win);
    else
        MPI_Win_unlock_all(win);
    if (row->starts)
        MPI_Send_init(&incoming, 1, MPI_INT, MPI_PROC_NULL, 0, comm, &requests[0]);
    request = requests[0];
    new_comm = MPI_COMM_NULL;
    new_win = MPI_WIN_NULL;
    new_file = MPI_FILE_NULL;
    new_group = MPI_GROUP_NULL;
    new_type = MPI_DATATYPE_NULL;
    new_info = MPI_INFO_NULL;
    new_op = MPI_OP_NULL;
    new_errhandler = MPI_ERRHANDLER_NULL;
    if (row->frees) {
        MPI_Comm_dup(comm, &new_comm);
        MPI_Win_create(buffers[7], 64, 1, MPI_INFO_NULL, comm, &new_win);
        MPI_File_open(MPI_COMM_SELF, "scratch.file", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &new_file);
        MPI_Comm_group(comm, &new_group);
        MPI_Type_contiguous(2, MPI_INT, &new_type);
        MPI_Info_create(&new_info);
        MPI_Op_create(sum, 1, &new_op);
        MPI_Comm_get_errhandler(comm, &new_errhandler);
    }
    memset(zeros, 0, sizeof zeros);
    memset(integers, 0, sizeof integers);
    memset(addresses, 0, sizeof addresses);
    for (int i = 0; i < 64; i++) {
        ones[i] = 1;
        types[i] = MPI_INT;
        infos[i] = MPI_INFO_NULL;
    }
}

#include "rows.h"

static sigjmp_buf before;

static void ended(int signal) { siglongjmp(before, signal); }

static void watch(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGPROF, SIGALRM};
    static _Alignas(16) char stack[1 << 16];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = ended, .sa_flags = SA_NODEFER | SA_ONSTACK};
    sigaltstack(&other, NULL);
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}

/* How a call ended, as a word. */
static const char *end_of(const struct row *row)
{
    static char text[64];
    struct itimerval patience = {.it_value = {.tv_usec = PATIENCE_US}}, none = {{0}};
    struct itimerval sleep = {.it_value = {.tv_usec = SLEEP_US}};
    /* Those of the tool interface ask nobody, and leave a lock behind when they crash. */
    if (strncmp(row->name, "MPI_T_", 6) == 0)
        sleep = patience;
    prepare(row);
    int signal = sigsetjmp(before, 1);
    if (signal == 0) {
        setitimer(ITIMER_PROF, &patience, NULL);
        setitimer(ITIMER_REAL, &sleep, NULL);
        int code = row->call(), class = code;
        setitimer(ITIMER_PROF, &none, NULL);
        setitimer(ITIMER_REAL, &none, NULL);
        if (code != NOT_AN_ERROR_CODE)
            MPI_Error_class(code, &class);
        snprintf(text, sizeof text, "%d", class);
        return text;
    }
    setitimer(ITIMER_PROF, &none, NULL);
    setitimer(ITIMER_REAL, &none, NULL);
    return signal == SIGALRM || signal == SIGPROF ? "hung" : "crashed";
}

int main(int argc, char **argv)
{
    static char attached[1 << 16];
    static const int one = 1, zero = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Cart_create(comm, 1, &one, &one, 0, &cart);
    MPI_Graph_create(comm, 1, &one, &zero, 0, &graph);
    MPI_Dist_graph_create_adjacent(comm, 1, &zero, &one, 1, &zero, &one, MPI_INFO_NULL, 0, &dist_graph);
    MPI_Comm_group(comm, &group);
    MPI_Win_create(buffers[6], 4096, 1, MPI_INFO_NULL, comm, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_File_open(MPI_COMM_SELF, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Buffer_attach(attached, sizeof attached);
    watch();
    /* Each row with nothing wrong, then with a null and a wild pointer in each place, and in all. */
    static const intptr_t wrong[] = {0, 0x10};
    int probe = 0, from = atoi(argv[1]), to = atoi(argv[2]);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        int first = ALL, last = rows[i].places;
        for (place = first; place < last; place++)
            for (int value = 0; value < (place == NOTHING ? 1 : 2); value++, probe++) {
                bad = wrong[value];
                if (probe < from || probe >= to)
                    continue;
                printf("%d %s place %d value %ld\n", probe, rows[i].name, place, (long)bad);
                fflush(stdout);
                /* The library may have said something, too. */
                printf("\n= %s\n", end_of(&rows[i]));
                fflush(stdout);
            }
    }
    /* What is left of the library may not be able to end. */
    _exit(0);
}
