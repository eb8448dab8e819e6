/* Regions and functions that are left and ended in odd ways, all functions being instrumented.
 *
 * `thrown` is left by a longjmp three thousand times, at always the same place of the stack, and
 * `deep` once from more functions than are kept: `after`, which takes 30 ms in each of two rounds,
 * is there nevertheless. The region "outer" is ended in `inner`, which goes on: its time is its own,
 * and "all" has what is left. Two libraries have functions at the same address, one after the
 * other. Arguments are evaluated once, also where there is no collector.
 */
#include "../common.h"
#include "laggard.h"

#include <dlfcn.h>
#include <setjmp.h>

static jmp_buf back;

static const char *next(const char *name, long *count)
{
    ++*count;
    return name;
}

NOINLINE void thrown(int n)
{
    if (n >= 0)
        longjmp(back, 1);
}

NOINLINE void deep(int depth)
{
    if (depth == 0)
        thrown(depth);
    else
        deep(depth - 1);
    __asm__ volatile("");
}

NOINLINE void after(double until) { at_ms(until); }

NOINLINE void inner(void)
{
    at_ms(170);
    laggard_region_end("outer");
    at_ms(230);
}

int main(int argc, char **argv)
{
    static volatile int n;
    long count = 0;
    REQUIRE(argc == 3);
    start(&argc, &argv);
    for (n = 0; n < 3000; n++)
        if (!setjmp(back))
            thrown(n);
    after(30);
    if (!setjmp(back))
        deep(3000);
    after(60);

    at_ms(80);
    laggard_region_begin(next("all", &count));
    at_ms(100);
    laggard_region_begin("outer");
    at_ms(130);
    inner();
    at_ms(240);
    laggard_region_end(next("all", &count));
    laggard_phase(next("libraries", &count));

    for (int at = 1; at < 3; at++) {
        void *library = dlopen(argv[at], RTLD_NOW);
        REQUIRE(library != NULL);
        void (*work)(void) = (void (*)(void))dlsym(library, "work");
        REQUIRE(work != NULL);
        work();
        dlclose(library);
    }
    finish(3, count);
}
