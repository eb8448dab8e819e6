/* What dlsym finds depends on who calls it. Argument: a plugin. Prints what was found where, which
 * must be as ever. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void tell(const char *what, void *found)
{
    const char *error = dlerror(), *file = "nowhere";
    Dl_info info;
    if (found != NULL && dladdr(found, &info) != 0)
        file = strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
    /* A function of ours stands for MPI's: that much may differ. */
    if (strncmp(file, "liblaggard", 10) == 0)
        file = MPI_LIBRARY;
    if (strncmp(file, MPI_LIBRARY, strlen(MPI_LIBRARY)) == 0)
        file = "MPI";
    printf("%s: %s, %s\n", what, file, error == NULL ? "no error" : error);
}

#ifdef PLUGIN /* dlsym_plugin.c */

/* Next to the C library's of the same name, and one that only this library has. */
pid_t getpid(void) { return ((pid_t(*)(void))dlsym(RTLD_NEXT, "getpid"))(); }
int only_in_plugin(void) { return 1; }

void plugin(void)
{
    tell("plugin, next getpid", dlsym(RTLD_NEXT, "getpid"));
    tell("plugin, next malloc", dlsym(RTLD_NEXT, "malloc"));
    tell("plugin, default only_in_plugin", dlsym(RTLD_DEFAULT, "only_in_plugin"));
    tell("plugin, default getpid", dlsym(RTLD_DEFAULT, "getpid"));
    tell("plugin, default MPI_No_such", dlsym(RTLD_DEFAULT, "MPI_No_such"));
    tell("plugin, next MPI_No_such", dlsym(RTLD_NEXT, "MPI_No_such"));
}

#else

static int calls;

pid_t getpid(void)
{
    calls++;
    return ((pid_t(*)(void))dlsym(RTLD_NEXT, "getpid"))();
}

int main(int argc, char **argv)
{
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), *mpi, *other;
    if (argc != 2 || library == NULL || getpid() <= 0 || calls != 1)
        return 1;
    tell("next getpid", dlsym(RTLD_NEXT, "getpid"));
    tell("next malloc", dlsym(RTLD_NEXT, "malloc"));
    tell("default getpid", dlsym(RTLD_DEFAULT, "getpid"));
    tell("default only_in_plugin", dlsym(RTLD_DEFAULT, "only_in_plugin"));
    ((void (*)(void))dlsym(library, "plugin"))();
    tell("handle, getpid", dlsym(library, "getpid"));
    tell("handle, MPI_Send", dlsym(library, "MPI_Send"));
    tell("handle, empty", dlsym(library, ""));
    tell("handle, P", dlsym(library, "P"));
    tell("handle, PMP", dlsym(library, "PMP"));

    /* An error is told once, and forgotten with the next lookup. */
    mpi = dlopen(MPI_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    dlsym(mpi, "no_such");
    tell("MPI_Send after an error", dlsym(mpi, "MPI_Send"));
    tell("PMPI_Send", dlsym(mpi, "PMPI_Send"));
    tell("MPI_No_such", dlsym(mpi, "MPI_No_such"));
    tell("MPI_No_such again", dlsym(mpi, "MPI_No_such"));
    tell("PMPI_No_such", dlsym(mpi, "PMPI_No_such"));
    tell("MPI_UNWEIGHTED", dlsym(mpi, "MPI_UNWEIGHTED"));
    tell("default MPI_No_such", dlsym(RTLD_DEFAULT, "MPI_No_such"));
    tell("the program, malloc", dlsym(dlopen(NULL, RTLD_NOW), "malloc"));

    /* Another copy of everything, to which nothing of this one is known. */
    other = dlmopen(LM_ID_NEWLM, MPI_LIBRARY, RTLD_NOW);
    if (other != NULL) {
        int (*version)(int *, int *) = (int (*)(int *, int *))dlsym(other, "MPI_Get_version");
        Lmid_t here, there = LM_ID_BASE;
        struct link_map *map;
        Dl_info info;
        int major = 0, minor = 0, result = version(&major, &minor);
        dlinfo(other, RTLD_DI_LMID, &there);
        dladdr1((void *)version, &info, (void **)&map, RTLD_DL_LINKMAP);
        dlinfo(map, RTLD_DI_LMID, &here);
        printf("another namespace: %d, MPI %d.%d, %s\n", result, major, minor, here == there ? "its own" : "ours");
    }
    return 0;
}

#endif
