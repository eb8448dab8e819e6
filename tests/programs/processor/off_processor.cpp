// As off_processor.c: rank 0 sleeps, or touches new memory.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mpi.h>
#include <sys/resource.h>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;
using Ns = std::chrono::duration<double, std::nano>;

struct Spent {
    double kernel = 0, processor = 0; // ns
    long faults = 0;

    static Spent until_now()
    {
        rusage usage;
        getrusage(RUSAGE_THREAD, &usage);
        auto ns = [](timeval t) { return 1e9 * t.tv_sec + 1e3 * t.tv_usec; };
        return {ns(usage.ru_stime), ns(usage.ru_stime) + ns(usage.ru_utime), usage.ru_minflt};
    }
};

template <class Bytes> static void touch(Ns part)
{
    double until = Spent::until_now().processor + part.count();
    // So much is new from the kernel each time.
    while (Spent::until_now().processor < until)
        Bytes(40 << 20, 1);
}

int main(int argc, char **argv)
{
    constexpr int rounds = 20;
    constexpr auto part = std::chrono::milliseconds(20);
    int rank, value = 0;
    double slept = 0, worked = 0, off = 0, kernel = 0;
    long faults = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    bool sleeps = std::strcmp(argv[1], "sleep") == 0;
    for (int round = 0; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD); // MARK begin
        if (rank == 0) {
            Spent before = Spent::until_now();
            auto begin = Clock::now();
            if (sleeps)
                std::this_thread::sleep_for(part);
            else
                touch<std::vector<char>>(part);
            double took = Ns(Clock::now() - begin).count();
            Spent after = Spent::until_now();
            slept += sleeps ? took : 0;
            worked += after.processor - before.processor;
            off += took - (after.processor - before.processor);
            kernel += after.kernel - before.kernel;
            faults += after.faults - before.faults;
            MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD); // MARK end
        } else {
            MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    if (rank == 0)
        std::printf("{\"slept\": %.0f, \"worked\": %.0f, \"off\": %.0f, \"kernel\": %.0f, \"faults\": %ld}\n", slept,
                    worked, off, kernel, faults);
    MPI_Finalize();
}
