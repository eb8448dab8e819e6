/* The receives are in a library that is loaded late and unloaded before the end.
 * Argument: the library. Rank 1 waits in it: 3 x 60 ms. */
#include "../common.h"
#include <dlfcn.h>

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    for (int round = 0; round < 3; round++) {
        int value = -1;
        at(round, rank == 0 ? DELAY : 0);
        if (rank == 0) {
            MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD);
        } else {
            void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
            REQUIRE(library != NULL);
            int (*receive)(int) = (int (*)(int))dlsym(library, "plugin_receive");
            REQUIRE(receive != NULL);
            value = receive(0);
            REQUIRE(value == round);
            REQUIRE(dlclose(library) == 0);
        }
        sum += value;
    }
    finish(3, sum);
}
