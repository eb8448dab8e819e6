/* The plugin of dlsym.c. */
#define PLUGIN
#include "dlsym.c"
