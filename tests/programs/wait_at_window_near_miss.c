/* All ranks create and free the window together.
 *
 * RUN np=4
 * SILENT wait_at_window_create below=0.030
 * SILENT wait_at_window_free below=0.030
 */
#include "common.h"

int main(int argc, char **argv)
{
    int memory[4] = {0};
    MPI_Win window;
    start(&argc, &argv);
    for (int round = 0; round < 2; round++) {
        at(round, 20);
        MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window);
        at(round, 80);
        MPI_Win_free(&window);
    }
    finish(2, rank);
}
