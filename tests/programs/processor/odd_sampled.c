/* What a sampler must not disturb, by the first argument. The output tells what the program saw. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
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

enum { JUMPS = 300 };
static sigjmp_buf back;
static volatile sig_atomic_t jumped;

static void jump(int signal)
{
    (void)signal;
    if (jumped >= JUMPS)
        return;
    if (gettid() == getpid())
        siglongjmp(back, 1);
    others++;
}

/* Signals of the process, from whose handler the program jumps away: they come to the first thread. */
static void jump_away(void)
{
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = jump}, NULL);
    while (jumped < JUMPS) {
        if (sigsetjmp(back, 1) != 0) {
            jumped++;
            continue;
        }
        /* Once: a signal that comes while the thread is in the handler would go elsewhere in any case. */
        struct itimerval soon = {{0, 0}, {0, 1000}};
        setitimer(ITIMER_REAL, &soon, NULL);
        work(3);
    }
    printf("%d: %d jumps, %s elsewhere\n", rank, (int)jumped, others < JUMPS / 50 ? "hardly any" : "many");
}

/* The program looks which signals nobody uses, and then uses them all, also those of another thread that is sampled. */
static void use_all_signals(void)
{
    int used = 0;
    struct sigaction now;
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++) {
        sigaction(signal, NULL, &now);
        used += now.sa_handler != SIG_DFL;
    }
    for (int one = SIGRTMIN; one <= SIGRTMAX; one++) {
        if (one % 2 == rank)
            used += signal(one, on_tick) != SIG_DFL;
        else
            used += sigaction(one, &(struct sigaction){.sa_handler = on_tick}, &now) || now.sa_handler != SIG_DFL;
    }
    meet(100);
    raise(SIGRTMAX - 3);
    printf("%d: %d used, got %d\n", rank, used, (int)others);
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

static void *call_briefly(void *unused)
{
    MPI_Barrier(MPI_COMM_SELF);
    return unused;
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

static void *fork_alone(void *unused)
{
    work(5);
    in_child(child_works);
    return unused;
}

/* Calls nothing: computes, or does so until it is cancelled. */
static void *compute_alone(void *to)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    return compute(to);
}

/* Threads that call nothing are sampled from when they begin: many that are short, some that are cancelled, have the
 * smallest stack, fork, or are there when recording ends. */
static void start_alone(void)
{
    pthread_t thread, last;
    pthread_attr_t small;
    void *result;
    for (int n = 0; n < 2000; n++) {
        pthread_create(&thread, NULL, compute_alone, NULL);
        if (n % 3 == 0)
            pthread_detach(thread);
        else
            pthread_join(thread, NULL);
    }
    for (int n = 0; n < 20; n++) {
        pthread_create(&thread, NULL, compute_alone, &rank);
        work(3);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        if (result != PTHREAD_CANCELED)
            printf("%d: not cancelled\n", rank);
    }
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
    for (int n = 0; n < 20; n++) {
        if (pthread_create(&thread, &small, compute, NULL) == 0)
            pthread_join(thread, NULL);
    }
    pthread_create(&thread, NULL, fork_alone, NULL);
    pthread_join(thread, NULL);
    pthread_create(&last, NULL, compute_alone, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    work(30);
    pthread_cancel(last);
    pthread_join(last, NULL);
}

static void child_executes(void)
{
    work(30);
    execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
    _exit(1);
}

/* A child that shares this process's memory, and nothing else, has handlers for all signals. */
static void child_of_vfork(void)
{
    int status;
    pid_t child = vfork();
    if (child == 0) {
        for (int one = SIGRTMIN; one <= SIGRTMAX; one++)
            sigaction(one, &(struct sigaction){.sa_handler = on_tick}, NULL);
        _exit(5);
    }
    waitpid(child, &status, 0);
    printf("%d: child %d\n", rank, status);
}

static sigset_t all_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    return all;
}

/* All signals are blocked, and are taken one by one: there are no others than those that the program sends itself. */
static void take_signals(void)
{
    sigset_t all = all_signals(), pending;
    struct timespec short_while = {0, 2000000};
    int taken, found = 0;
    siginfo_t info;
    meet(50);
    printf("%d: timed out %d\n", rank, sigtimedwait(&all, &info, &short_while));
    work(20);
    sigpending(&pending);
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++)
        found += sigismember(&pending, signal);
    printf("%d: %d pending\n", rank, found);
    raise(SIGUSR1);
    work(20);
    sigwait(&all, &taken);
    printf("%d: taken %d\n", rank, taken == SIGUSR1);
    raise(SIGUSR2);
    work(20);
    printf("%d: told %d\n", rank, sigwaitinfo(&all, &info) == SIGUSR2 && info.si_signo == SIGUSR2);
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
}

/* The same by a descriptor. */
static void read_signals(void)
{
    sigset_t all = all_signals();
    int file = signalfd(-1, &all, SFD_NONBLOCK);
    struct signalfd_siginfo info;
    meet(50);
    printf("%d: read %d\n", rank, (int)read(file, &info, sizeof info));
    raise(SIGUSR1);
    work(20);
    int size = (int)read(file, &info, sizeof info);
    printf("%d: read %d\n", rank, size == sizeof info && info.ssi_signo == SIGUSR1);
    close(file);
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
}

/* Code that the program makes, without tables for unwinding, and without frame pointers. */
static void run_made_code(void)
{
#ifdef __x86_64__
    static const unsigned char code[] = {
        0x55,                         /* push rbp */
        0x48, 0x83, 0xec, 0x40,       /* sub rsp, 64 */
        0x31, 0xed,                   /* xor ebp, ebp */
        0x48, 0x89, 0xf8,             /* mov rax, rdi */
        0x48, 0xff, 0xc5,             /* inc rbp */
        0x48, 0xff, 0xc8,             /* dec rax */
        0x75, 0xf8,                   /* jnz to inc rbp */
        0x89, 0xe8,                   /* mov eax, ebp */
        0x48, 0x83, 0xc4, 0x40,       /* add rsp, 64 */
        0x5d,                         /* pop rbp */
        0xc3,                         /* ret */
    };
    int access = PROT_READ | PROT_WRITE | PROT_EXEC;
    void *made = mmap(NULL, 4096, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made, code, sizeof code);
    int (*run)(long) = (int (*)(long))made;
    for (int n = 0; n < 5; n++) {
        printf("%d: made %d\n", rank, run(30000000));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    munmap(made, 4096);
#endif
}

/* One processor for all threads of the process, and no time on it for those of a sampler while another one computes. */
static void starve_others(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        pid_t number = atoi(task->d_name);
        if (number <= 0)
            continue;
        sched_setaffinity(number, sizeof one, &one);
        if (number != getpid())
            sched_setscheduler(number, SCHED_IDLE, &(struct sched_param){0});
    }
    closedir(tasks);
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
    } else if (strcmp(what, "handlers") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, call_and_compute, &rank);
        work(20);
        use_all_signals();
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    } else if (strcmp(what, "blocked") == 0) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        meet(100);
        sigemptyset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        meet(50);
    } else if (strcmp(what, "jumps") == 0) {
        jump_away();
    } else if (strcmp(what, "taken") == 0) {
        take_signals();
    } else if (strcmp(what, "read") == 0) {
        read_signals();
    } else if (strcmp(what, "starved") == 0) {
        starve_others();
        meet(300);
    } else if (strcmp(what, "made") == 0) {
        run_made_code();
    } else if (strcmp(what, "fork") == 0) {
        in_child(child_works);
        in_child(child_executes);
    } else if (strcmp(what, "vfork") == 0) {
        child_of_vfork();
        meet(200);
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
    } else if (strcmp(what, "crowd") == 0) {
        /* Both ranks together have ten thousand short threads, all of which are recorded. */
        for (int n = 0; n < 1000; n++) {
            pthread_t threads[5];
            for (int at = 0; at < 5; at++)
                pthread_create(&threads[at], NULL, call_briefly, NULL);
            for (int at = 0; at < 5; at++)
                pthread_join(threads[at], NULL);
        }
    } else if (strcmp(what, "alone") == 0) {
        start_alone();
        printf("%d: done\n", rank);
        return 0;
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
