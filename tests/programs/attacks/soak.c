/* One rank that makes as many calls as its argument says and compares its own memory, without
 * files, after a tenth of them and at the end. Prints the calls of its loop, and both in kB. With
 * another argument the calls make communicators and free them. */
#include "../common.h"

static long anonymous_kb(void)
{
    char line[256];
    long kb = -1;
    FILE *status = fopen("/proc/self/status", "r");
    REQUIRE(status != NULL);
    while (fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "RssAnon: %ld", &kb) == 1)
            break;
    fclose(status);
    return kb;
}

int main(int argc, char **argv)
{
    long calls = 0, wanted = atol(argv[1]), early = -1;
    char buffer[64] = "", got[64];
    int found;
    MPI_Init(&argc, &argv);
    start_clock();
    while (argc > 2 && calls < wanted) {
        MPI_Comm copy;
        MPI_Comm_dup(WORLD, &copy);
        MPI_Comm_free(&copy);
        calls += 2;
        if (early < 0 && calls >= wanted / 10)
            early = anonymous_kb();
    }
    while (calls < wanted) {
        MPI_Request both[2];
        int tag = calls / 8 % 100;
        MPI_Send(buffer, 8, MPI_CHAR, MPI_PROC_NULL, tag, WORLD);
        MPI_Send(buffer, 64, MPI_CHAR, MPI_PROC_NULL, 0, WORLD);
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &found, MPI_STATUS_IGNORE);
        MPI_Irecv(got, 64, MPI_CHAR, MPI_ANY_SOURCE, tag, WORLD, &both[0]);
        MPI_Isend(buffer, 16, MPI_CHAR, rank, tag, WORLD, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        MPI_Recv(got, 8, MPI_CHAR, MPI_PROC_NULL, 0, WORLD, MPI_STATUS_IGNORE);
        MPI_Iprobe(0, 1, WORLD, &found, MPI_STATUS_IGNORE);
        calls += 8;
        if (early < 0 && calls >= wanted / 10)
            early = anonymous_kb();
    }
    printf("calls %ld early_kb %ld late_kb %ld\n", calls, early, anonymous_kb());
    MPI_Finalize();
    return 0;
}
