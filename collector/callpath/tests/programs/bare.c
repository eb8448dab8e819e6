/* Compiled without unwind tables. */
typedef void (*hook_t)(void);
__attribute__((noinline)) int bare(hook_t hook)
{
    hook();
    __asm__ volatile("" ::: "memory");
    return 1;
}
