/* Creating and freeing windows is collective: all wait for the last member.
 *
 * RUN np=4
 * EXPECT wait_at_window_create at=@create ranks=0,1,2 severity=0.360 operation=MPI_Win_create cause_rank=3 cause_line=@create
 * EXPECT wait_at_window_create at=@allocate ranks=0,1,2 severity=0.360 operation=MPI_Win_allocate cause_rank=3 cause_line=@allocate
 * EXPECT wait_at_window_free at=@free ranks=0,1,2 severity=0.720 operation=MPI_Win_free cause_rank=3 cause_line=@free
 * METRIC wait_at_window_create 0.720
 * METRIC wait_at_window_free 0.720
 */
#include "common.h"

int main(int argc, char **argv)
{
    long sum = 0;
    int memory[4] = {0}, *allocated;
    MPI_Win window;
    start(&argc, &argv);
    for (int round = 0; round < 8; round++) {
        at(round, rank == 3 ? DELAY : 0);
        switch (round % 4) {
        case 0: MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &window); break; /* MARK create */
        case 2: MPI_Win_allocate(sizeof memory, sizeof(int), MPI_INFO_NULL, WORLD, &allocated, &window); break; /* MARK allocate */
        default: MPI_Win_free(&window); /* MARK free */
        }
        sum += round;
    }
    finish(8, sum);
}
