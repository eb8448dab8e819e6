// A thread of the program starts another one in each round, which is late and calls nothing, and waits for its end. The
// first thread waits for that one.
//
// Built with -pthread, run with one rank.
#include "../common.h"
#include <thread>

static NOINLINE void start_late(int round)
{
    std::thread late([=] { at(round, DELAY); }); // MARK start
    late.join(); // MARK inner
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    start_clock();
    for (int round = 0; round < REPEATS; round++) {
        at(round, 0);
        std::thread starter(start_late, round);
        starter.join();
    }
    finish(REPEATS, REPEATS);
}
