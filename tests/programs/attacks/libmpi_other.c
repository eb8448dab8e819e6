/* An MPI library of another family, as far as a program needs one that does nothing. Its handles
 * are integers. */
#include <stdio.h>
#include <string.h>

static int initialized;

int MPI_Init(int *argc, char ***argv)
{
    initialized = argc != NULL && argv != NULL;
    return 0;
}

int MPI_Initialized(int *flag)
{
    *flag = initialized;
    return 0;
}

int MPI_Get_library_version(char *text, int *length)
{
    strcpy(text, "Another MPI, version 1");
    *length = (int)strlen(text);
    return 0;
}

int MPI_Query_thread(int *level)
{
    *level = 0;
    return 0;
}

int MPI_Barrier(int comm)
{
    printf("barrier on %x\n", comm);
    return comm == 0x44000000 ? 0 : 5;
}

int MPI_Finalize(void)
{
    initialized = 0;
    return 0;
}

int PMPI_Init(int *, char ***) __attribute__((alias("MPI_Init")));
int PMPI_Initialized(int *) __attribute__((alias("MPI_Initialized")));
int PMPI_Get_library_version(char *, int *) __attribute__((alias("MPI_Get_library_version")));
int PMPI_Query_thread(int *) __attribute__((alias("MPI_Query_thread")));
int PMPI_Barrier(int) __attribute__((alias("MPI_Barrier")));
int PMPI_Finalize(void) __attribute__((alias("MPI_Finalize")));
