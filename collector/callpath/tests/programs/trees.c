/* Random call trees over functions whose frames are laid out in all the ways
 * that compilers know. The hook is called at random places. */
#include <alloca.h>
#include <string.h>

typedef void (*hook_t)(void);
static hook_t hook;
static unsigned long long state;

static unsigned next(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(state >> 33);
}

#define KEEP(p) __asm__ volatile("" : : "r"(p) : "memory")
#define NOINLINE __attribute__((noinline, noclone))
static int step(int depth);

NOINLINE static int small(int depth)
{
    int r = step(depth - 1);
    return r + depth;
}
NOINLINE static int large(int depth)
{
    char room[5000];
    KEEP(room);
    room[0] = (char)depth;
    int r = step(depth - 1);
    KEEP(room);
    return r + room[0];
}
NOINLINE static int with_alloca(int depth)
{
    char *room = alloca(16 + next() % 300);
    room[0] = (char)depth;
    KEEP(room);
    int r = step(depth - 1);
    KEEP(room);
    return r + room[0];
}
NOINLINE static int with_vla(int depth)
{
    int n = 1 + (int)(next() % 4);
    int room[n];
    memset(room, 0, sizeof room);
    KEEP(room);
    int r = step(depth - 1) + step(depth - 2);
    KEEP(room);
    return r + room[0];
}
NOINLINE static int aligned(int depth)
{
    char room[64] __attribute__((aligned(64)));
    KEEP(room);
    int r = step(depth - 1);
    KEEP(room);
    return r + 1;
}
NOINLINE static int aligned_alloca(int depth)
{
    char room[128] __attribute__((aligned(128)));
    char *more = alloca(8 + next() % 100);
    KEEP(room);
    KEEP(more);
    int r = step(depth - 1);
    KEEP(room);
    KEEP(more);
    return r + 1;
}
/* Uses every register, also rbp where it is free: its saved value is noise. */
NOINLINE static int busy(int depth)
{
    unsigned a = next(), b = next(), c = next(), d = next(), e = next(), f = next(), g = next();
    int r = 0;
    for (unsigned i = 0; i < 2; i++) {
        r += step(depth - 1);
        a += b; b ^= c; c += d; d ^= e; e += f; f ^= g; g += a;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    }
    return r + (int)(a ^ b ^ c ^ d ^ e ^ f ^ g);
}
NOINLINE static int many_args(int a, int b, int c, int d, int e, int f, int g, int h, int depth)
{
    int r = step(depth - 1);
    KEEP(&r);
    return r + a + b + c + d + e + f + g + h;
}
NOINLINE static int pushes(int depth)
{
    return many_args(1, 2, 3, 4, 5, 6, 7, depth, depth) + 1;
}
NOINLINE static int tail(int depth)
{
    KEEP(&state);
    return step(depth - 1);
}
NOINLINE static int twice(int depth)
{
    hook();
    int r = step(depth - 1);
    hook();
    return r + 1;
}

static int step(int depth)
{
    if (depth <= 0) {
        hook();
        return 1;
    }
    switch (next() % 12) {
    case 0: return small(depth);
    case 1: return large(depth);
    case 2: return with_alloca(depth);
    case 3: return with_vla(depth);
    case 4: return aligned(depth);
    case 5: return aligned_alloca(depth);
    case 6: return busy(depth);
    case 7: return pushes(depth);
    case 8: return tail(depth);
    case 9: return twice(depth);
    case 10: return small(depth) + small(depth - 2);
    default: hook(); return 1;
    }
}

void run(hook_t h, unsigned long long seed, int depth)
{
    hook = h;
    state = seed;
    step(depth);
}
