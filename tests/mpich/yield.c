/* Ranks that wait leave their core to those that work, as Open MPI's do with the option
 * mpi_yield_when_idle: MPICH has no such option, and 4 of its ranks on 2 cores wait for each
 * other's share of time. UCX is asked for progress in every turn of MPICH's loops. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*progress)(void *);
    if (progress == 0) {
        /* By its file: who loads MPI for itself alone hides it from the other way. */
        void *ucp = dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD);
        progress = (unsigned (*)(void *))dlsym(ucp, "ucp_worker_progress");
    }
    unsigned done = progress(worker);
    if (done == 0)
        sched_yield();
    return done;
}
