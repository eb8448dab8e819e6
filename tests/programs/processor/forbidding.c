/* Forbids system calls as containers do, and becomes the program of the further arguments. The first one
 * says what: `perf`, `timers` too, or `all` that sampling needs; `death` ends programs that ask for `perf`. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int all = strcmp(argv[1], "all") == 0;
    int ends = strcmp(argv[1], "death") == 0;
    int timers = all || strcmp(argv[1], "timers") == 0;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_perf_event_open, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, timers ? __NR_timer_create : __NR_perf_event_open, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, all ? __NR_rt_tgsigqueueinfo : __NR_perf_event_open, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, ends ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return 2;
    execv(argv[2], argv + 2);
    perror(argv[2]);
    return 3;
}
