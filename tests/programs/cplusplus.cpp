// C++: names with templates, lambdas and methods; the MPI calls come from a class.
//
// RUN np=2
// EXPECT late_sender at=@recv ranks=1 severity=0.300 instances=5 cause_rank=0 cause_line=@send function=receive
// EXPECT wait_at_barrier at=@barrier ranks=0 severity=0.300 instances=5 cause_rank=1 cause_line=@barrier
// METRIC late_sender 0.300
// SILENT late_receiver
#include "common.h"
#include <vector>

namespace pipeline {
template <typename T> struct Channel {
    int peer;
    NOINLINE void send(const std::vector<T> &data) const
    {
        MPI_Send(data.data(), int(data.size() * sizeof(T)), MPI_BYTE, peer, 0, WORLD); // MARK send
    }
    NOINLINE std::vector<T> receive(std::size_t count) const
    {
        std::vector<T> data(count);
        MPI_Recv(data.data(), int(count * sizeof(T)), MPI_BYTE, peer, 0, WORLD, MPI_STATUS_IGNORE); // MARK recv
        return data;
    }
};
} // namespace pipeline

int main(int argc, char **argv)
{
    long sum = 0;
    start(&argc, &argv);
    const pipeline::Channel<long> channel{1 - rank};
    for (int round = 0; round < REPEATS; round++) {
        at(round, rank == 0 ? DELAY : 0);
        if (rank == 0) {
            channel.send({round, 2L * round});
        } else {
            auto data = channel.receive(2);
            REQUIRE(data[0] == round && data[1] == 2 * round);
            sum += data[0] + data[1];
        }
    }
    auto synchronise = [] { MPI_Barrier(WORLD); }; // MARK barrier
    for (int round = REPEATS; round < 2 * REPEATS; round++) {
        at(round, rank == 1 ? DELAY : 0);
        synchronise();
    }
    finish(2 * REPEATS, sum);
}
