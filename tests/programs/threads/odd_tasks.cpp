/* What tasks do as well: data with copy constructors, large and aligned data, tasks of tasks, loops of tasks with and
 * without reductions, taskgroups in taskgroups, dependences, priorities, tasks that are executed at once,
 * exceptions inside, MPI calls, and regions within. Results must not change.
 *
 * Built with -fopenmp -pthread, run with two threads of one rank or more.
 */
#include "../common.h"
#include <omp.h>
#include <atomic>
#include <stdexcept>

static std::atomic<long> sum;
static std::atomic<int> alive;

/* Counts itself: each copy must be destroyed. */
struct Counted {
    long value;
    explicit Counted(long value) : value(value) { alive++; }
    Counted(const Counted &other) : value(other.value) { alive++; }
    ~Counted() { alive--; }
};

struct Large {
    char bytes[5000];
};

struct alignas(64) Aligned {
    long value[8];
};

static long fibonacci(int n)
{
    if (n < 2)
        return n;
    long one, two;
#pragma omp task shared(one) firstprivate(n)
    one = fibonacci(n - 1);
#pragma omp task shared(two) firstprivate(n) if (n > 6)
    two = fibonacci(n - 2);
#pragma omp taskwait
    return one + two;
}

static void data(int n)
{
    Counted counted(n);
    Large large;
    Aligned aligned;
    memset(&large, n, sizeof large);
    for (long &value : aligned.value)
        value = n;
#pragma omp task firstprivate(counted)
    sum += counted.value;
#pragma omp task firstprivate(counted) if (0)
    sum += counted.value;
#pragma omp task firstprivate(large)
    for (char byte : large.bytes)
        sum += byte;
#pragma omp task firstprivate(aligned) final(n % 2 == 0)
    {
        REQUIRE(reinterpret_cast<uintptr_t>(&aligned) % 64 == 0);
        sum += aligned.value[7];
    }
#pragma omp taskwait
}

static void loops()
{
    long all = 0;
#pragma omp taskloop grainsize(7) shared(sum)
    for (int n = 0; n < 100; n++)
        sum += n;
#pragma omp taskloop reduction(+ : all) num_tasks(5)
    for (int n = 0; n < 100; n++)
        all += n;
#pragma omp taskloop nogroup firstprivate(all)
    for (unsigned long long n = 0; n < 10; n++)
        sum += all + static_cast<long>(n);
    sum += all;
}

static void groups()
{
    long order = 0;
#pragma omp taskgroup
    {
#pragma omp task
        {
#pragma omp taskgroup
            {
#pragma omp task
                sum += 1;
            }
#pragma omp task
            sum += 2;
        }
#pragma omp task depend(out : order) shared(order) priority(3)
        order = 1;
#pragma omp task depend(inout : order) shared(order) untied
        order = 10 * order + 2;
#pragma omp task depend(in : order) shared(order) mergeable
        sum += order;
    }
    REQUIRE(order == 12);
}

static void inside()
{
#pragma omp task
    {
        try {
            throw std::runtime_error("caught");
        } catch (const std::exception &) {
            sum += 5;
        }
    }
#pragma omp task
    {
        long own = 0;
#pragma omp parallel num_threads(2) reduction(+ : own)
        {
#pragma omp task shared(own)
            sum += 1;
            own += 1;
        }
        sum += own;
    }
#pragma omp task
    {
        int flag, value = 0, received = 1;
        MPI_Request request;
        MPI_Isend(&value, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &request);
        MPI_Recv(&received, 1, MPI_INT, 0, 3, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Iprobe(MPI_ANY_SOURCE, 4, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        sum += flag + 1 + received;
    }
}

int main(int argc, char **argv)
{
    int provided;
    long of_tasks = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    start_clock();
#pragma omp parallel
#pragma omp single
    {
        of_tasks = fibonacci(18);
        for (int n = 0; n < 20; n++)
            data(n);
        loops();
        groups();
        inside();
    }
    REQUIRE(alive == 0);
    /* Tasks outside of regions are executed at once. */
#pragma omp task
    sum += 100;
    finish(1, sum + of_tasks);
}
