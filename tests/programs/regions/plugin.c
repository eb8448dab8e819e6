/* A library with an instrumented function that takes 20 ms, whose name is defined as OWN. */
#include <unistd.h>

__attribute__((noinline)) void OWN(void) { usleep(20000); }

__attribute__((no_instrument_function)) void work(void)
{
    OWN();
    __asm__ volatile("");
}
