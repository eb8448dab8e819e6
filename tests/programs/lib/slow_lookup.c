/* A collector that is found slowly: looking one of its functions up takes so long that all threads
 * that want it do so at the same time. It counts what it is told, and prints that at the end.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int begun, ended, wrong;

static void count(int *counter, const char *name)
{
    __atomic_add_fetch(strcmp(name, "meet") == 0 ? counter : &wrong, 1, __ATOMIC_SEQ_CST);
}

static void begin(const char *name, const void *address)
{
    (void)address;
    count(&begun, name);
}

static void end(const char *name) { count(&ended, name); }

void *dlsym(void *handle, const char *name)
{
    static const char own[] = "laggard_collector_region_";
    if (strncmp(name, own, sizeof own - 1) == 0) {
        usleep(50000);
        return strcmp(name + sizeof own - 1, "begin") == 0 ? (void *)begin : (void *)end;
    }
    void *(*real)(void *, const char *) = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!real)
        real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return real ? real(handle, name) : NULL;
}

__attribute__((destructor)) static void tell(void)
{
    printf("begun %d ended %d wrong %d\n", begun, ended, wrong);
    fflush(stdout);
}
