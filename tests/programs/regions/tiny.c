/* A tiny function is called a million times, all functions being instrumented. Beside it rank 1
 * takes 60 ms longer in `solve` in each of 5 rounds, a function calls itself, and one is left
 * by a longjmp.
 */
#include "../common.h"

#include <setjmp.h>

static jmp_buf back;

NOINLINE long tiny(long n)
{
    __asm__ volatile("");
    return n & 1;
}

NOINLINE int solve(int round)
{
    at(round, rank == 1 ? 80 : 20);
    return MPI_Barrier(WORLD); /* MARK barrier */
}

NOINLINE long recurse(long n)
{
    return n == 0 ? 0 : 1 + recurse(n - 1);
}

NOINLINE void leave(int depth)
{
    if (depth == 0)
        longjmp(back, 1);
    leave(depth - 1);
}

NOINLINE long many(void)
{
    long sum = 0;
    for (long n = 0; n < 1000000; n++)
        sum += tiny(n);
    return sum;
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        at(round, 0);
        solve(round); /* MARK solve */
    }
    long sum = recurse(5000);
    if (!setjmp(back))
        leave(100);
    sum += many();
    finish(3 * REPEATS, sum);
    return 0;
}
