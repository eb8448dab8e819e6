/* The plugin of deepbind.c. */
#define PLUGIN
#include "deepbind.c"
