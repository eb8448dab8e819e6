/* A tool for OpenMP runtimes, as a user may name one. */
#include <stdio.h>

typedef void *(*lookup_t)(const char *);
struct tool {
    int (*initialize)(lookup_t, int, void *);
    void (*finalize)(void *);
    unsigned long data;
};

static int initialize(lookup_t lookup, int device, void *data)
{
    puts("the user's tool is there");
    return 1;
}

static void finalize(void *data) {}

void *ompt_start_tool(unsigned version, const char *runtime)
{
    static struct tool tool = {initialize, finalize, 0};
    return &tool;
}
