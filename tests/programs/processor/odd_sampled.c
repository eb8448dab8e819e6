/* What a sampler must not disturb, by the first argument. The output tells what the program saw. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile double sum;
static volatile sig_atomic_t ticks, others;
static int rank;

static double processor(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * t.tv_sec + 1e-6 * t.tv_nsec;
}

static void work(double ms)
{
    for (double until = processor() + ms; processor() < until;)
        for (int n = 0; n < 1000; n++)
            sum = sum * 0.999 + 1;
}

static void meet(double ms)
{
    work(ms);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void on_tick(int signal)
{
    if (signal == SIGPROF)
        ticks++;
    else
        others++;
}

/* The program has a profiler of its own, and handlers for the signals that a sampler may like. */
static void use_signals(void)
{
    for (int signal = SIGRTMAX - 5; signal <= SIGRTMAX; signal++)
        sigaction(signal, &(struct sigaction){.sa_handler = on_tick}, NULL);
    sigaction(SIGPROF, &(struct sigaction){.sa_handler = on_tick, .sa_flags = SA_RESTART}, NULL);
    struct itimerval often = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_PROF, &often, NULL);
}

static void *compute(void *to)
{
    work(to == NULL ? 1 : 1e9);
    return NULL;
}

/* Makes calls, so that it is recorded and sampled, and computes until it is cancelled. */
static void *call_and_compute(void *to)
{
    MPI_Barrier(MPI_COMM_SELF);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    compute(to);
    MPI_Barrier(MPI_COMM_SELF);
    return NULL;
}

static void in_child(void (*of_child)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0)
        of_child();
    waitpid(child, &status, 0);
    printf("%d: child %d\n", rank, status);
}

static void child_works(void)
{
    work(30);
    _exit(sum > 0 ? 7 : 8);
}

static void child_executes(void)
{
    work(30);
    execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
    _exit(1);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int provided;
    if (strcmp(what, "signals") == 0)
        use_signals();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    meet(20);
    if (strcmp(what, "signals") == 0) {
        for (int n = 0; n < 5000 && ticks < 5; n++)
            work(2);
        struct itimerval never = {{0, 0}, {0, 0}};
        setitimer(ITIMER_PROF, &never, NULL);
        printf("%d: %s ticks, %d others\n", rank, ticks >= 5 ? "own" : "no", (int)others);
    } else if (strcmp(what, "blocked") == 0) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        meet(100);
        sigemptyset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        meet(50);
    } else if (strcmp(what, "fork") == 0) {
        in_child(child_works);
        in_child(child_executes);
    } else if (strcmp(what, "exec") == 0) {
        meet(30);
        MPI_Finalize();
        work(30);
        char number[8];
        snprintf(number, sizeof number, "%d", rank);
        execl("/bin/sh", "sh", "-c", "echo $0: executed", number, (char *)NULL);
    } else if (strcmp(what, "cancel") == 0) {
        for (int n = 0; n < 20; n++) {
            pthread_t thread;
            void *result;
            pthread_create(&thread, NULL, call_and_compute, &rank);
            work(5);
            pthread_cancel(thread);
            pthread_join(thread, &result);
            if (result != PTHREAD_CANCELED)
                printf("%d: not cancelled\n", rank);
        }
    } else if (strcmp(what, "threads") == 0) {
        for (int n = 0; n < 300; n++) {
            pthread_t thread;
            pthread_create(&thread, NULL, call_and_compute, NULL);
            pthread_join(thread, NULL);
        }
    } else if (strcmp(what, "unload") == 0) {
        for (int n = 0; n < 50; n++) {
            void *library = dlopen(argv[2], RTLD_NOW);
            double (*run)(double) = (double (*)(double))dlsym(library, "compute_for");
            run(3);
            dlclose(library);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    meet(20);
    printf("%d: done\n", rank);
    fflush(stdout);
    if (strcmp(what, "exec") != 0)
        MPI_Finalize();
}
