#!/usr/bin/env bash
# The way of somebody who never used laggard, from a tarball or a repository to the cause in a program
# with a slow rank: what is typed, how long it takes, and how many words are read. Fails if the first
# paragraph of the report does not name the rank and the line.
#
# Usage: first-time.sh TARBALL|REPOSITORY [DIRECTORY-TO-WORK-IN]
#
# Needs an MPI with mpicc. Prints a row for each command, as analyzer/docs/first-time.md has them.
set -euo pipefail

source=$(realpath "${1:?the tarball of make dist, or a repository}")
work=$(mktemp -d "${2:-${TMPDIR:-/tmp}}/first-time-XXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

# Root is usual in containers; others need nothing. Each rank has a core, as far as there are two.
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks=$(nproc)
ranks=$((ranks > 4 ? 4 : ranks < 2 ? 2 : ranks))

# What somebody writes who has heard that one rank is slow: a ring of neighbours, and a sum at times.
cat >ring.c <<'END'
#include <mpi.h>
#include <stdio.h>

static double work(int rounds)
{
    volatile double sum = 0;
    for (int i = 0; i < rounds; i++)
        sum += 1.0 / (i + 1);
    return sum;
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double mine = rank, left, sum;
    for (int step = 0; step < 200; step++) {
        mine += work(rank == 1 ? 2000000 : 400000);
        MPI_Sendrecv(&mine, 1, MPI_DOUBLE, (rank + 1) % size, 0, &left, 1, MPI_DOUBLE,
                     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (step % 10 == 9)
            MPI_Allreduce(&left, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("sum %g\n", sum);
    MPI_Finalize();
    return 0;
}
END
line=$(grep -n 'MPI_Sendrecv(' ring.c | cut -d: -f1)

seconds=0
typed() {
    local begin end
    begin=$(date +%s.%N)
    bash -euc "$1" >out 2>&1 </dev/null || { cat out; exit 1; }
    end=$(date +%s.%N)
    seconds=$(awk "BEGIN { printf \"%.1f\", $end - $begin }")
    total=$(awk "BEGIN { printf \"%.1f\", ${total:-0} + $seconds }")
    printf '| `%s` | %s | %s |\n' "$2" "$seconds" "$(wc -w <out)"
}

echo "| typed | seconds | words printed |"
echo "|---|---:|---:|"
if [ -d "$source" ]; then
    typed "git clone '$source' laggard" "git clone URL laggard"
    typed "make -C laggard build" "make -C laggard build"
    export PATH=$work/laggard/target/release:$PATH
else
    typed "tar -xzf '$source'" "tar -xzf laggard-*.tar.gz"
    export PATH=$work/$(basename "$source" .tar.gz)/bin:$PATH
fi
typed "mpicc -g -O2 ring.c -o ring" "mpicc -g -O2 ring.c -o ring"
typed "mpirun -n $ranks ./ring" "mpirun -n $ranks ./ring"
bare=$seconds
typed "laggard run --report -- mpirun -n $ranks ./ring" "laggard run --report -- mpirun -n $ranks ./ring"

# What stands before the cause, and the sentence of the cause itself, without the program's output.
until_cause=$(sed -n '/^ring: /,/^$/p' out | tr '\n' ' ')
words=$(sed 's/\(ring.c:[0-9]* main\)\. .*/\1/' <<<"$until_cause" | wc -w)
echo
echo "$until_cause"
grep -q "rank 1 computes .* before MPI_Sendrecv at ring.c:$line main" <<<"$until_cause" || {
    echo "The first paragraph does not say that rank 1 computes longer before line $line." >&2
    exit 1
}
echo
echo "Words of the report until the cause: $words. All commands: $total s, $bare s of them the program alone."
