/* Chains of known shape. */
#include <setjmp.h>
#include <stdlib.h>
#include <ucontext.h>

typedef void (*hook_t)(void);
#define NOINLINE __attribute__((noinline, noclone))
#define KEEP(p) __asm__ volatile("" : : "r"(p) : "memory")

NOINLINE int inner(hook_t hook)
{
    hook();
    return 1;
}
NOINLINE int middle(hook_t hook) { return inner(hook) + 1; }
NOINLINE int outer(hook_t hook) { return middle(hook) + 1; }

NOINLINE int recurse(hook_t hook, int depth)
{
    if (depth == 0)
        hook();
    else
        recurse(hook, depth - 1);
    KEEP(&depth);
    return depth;
}

/* The same function called from two places. */
NOINLINE int layer(hook_t hook) { return inner(hook) + 1; }
NOINLINE void two_places(hook_t hook, int times)
{
    for (int i = 0; i < times; i++) {
        layer(hook);
        KEEP(&i);
        layer(hook);
        KEEP(&i);
    }
}

static jmp_buf away;
static hook_t jumping_hook;
NOINLINE static void jumper(int depth)
{
    char room[200];
    KEEP(room);
    jumping_hook();
    if (depth > 0)
        jumper(depth - 1);
    longjmp(away, 1);
}
NOINLINE void jumps(hook_t hook, int times)
{
    volatile int i;
    jumping_hook = hook;
    for (i = 0; i < times; i++)
        if (setjmp(away) == 0)
            jumper(i % 5);
        else
            inner(hook);
}

static hook_t compare_hook;
int compare(const void *a, const void *b)
{
    compare_hook();
    return *(const int *)a - *(const int *)b;
}
NOINLINE void sorts(hook_t hook)
{
    int values[] = {3, 1, 2};
    compare_hook = hook;
    qsort(values, 3, sizeof *values, compare);
    KEEP(values);
}

static ucontext_t home, coroutine;
static hook_t coroutine_hook;
static void body(void)
{
    for (int i = 0; i < 3; i++) {
        middle(coroutine_hook);
        swapcontext(&coroutine, &home);
    }
}
NOINLINE void coroutines(hook_t hook, char *stack, size_t size)
{
    coroutine_hook = hook;
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = size;
    coroutine.uc_link = &home;
    makecontext(&coroutine, body, 0);
    for (int i = 0; i < 3; i++)
        swapcontext(&home, &coroutine);
}
