#!/usr/bin/env bash
# Valgrind over what reads hostile bytes and over what lives in other people's programs.
#
# Usage: checkers.sh [memory|threads]      both
#
# memory: the tests of the readers, and recorded programs, under memcheck. threads: a recorded
# program whose threads all call MPI, under helgrind. MPI libraries have reports of their own:
# of a recorded program only those with a frame of the collector count.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/..
built=${CARGO_TARGET_DIR:-$root/target}
cargo=${CARGO:-cargo}
library=$built/release/liblaggard.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# The test executables of a package.
executables() {
    (cd "$root" && $cargo test --release --no-run --message-format=json -p "$1" 2>/dev/null) |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'
}

# Every byte that a reader looks at must be one of the file.
readers() {
    local executable log=$work/readers
    for package in laggard-trace laggard-baselines laggard-report; do
        for executable in $(executables $package); do
            echo "memcheck: $(basename "$executable")"
            PROPTEST_CASES=4 valgrind -q --error-exitcode=9 --leak-check=full \
                --errors-for-leak-kinds=definite "$executable" --test-threads=1 >"$log" 2>&1
            if [ $? -eq 9 ]; then
                failed=1
                grep '^==' "$log"
            fi
        done
    done
}

# recorded TOOL RANKS PROGRAM ARGUMENT...: reports with a frame of the collector.
recorded() {
    local tool=$1 ranks=$2 program=$3 options=(--allow-run-as-root --oversubscribe)
    shift 3
    local name
    name=$(basename "$program" .c)
    mpicc -O1 -g -pthread "$here/programs/attacks/$program" -o "$work/$name" || exit 1
    [ "$(id -u)" -eq 0 ] || options=(--oversubscribe)
    echo "$tool: $name on $ranks ranks"
    local trace=$work/trace-$tool-$name-$ranks
    # Open MPI's shortcuts through other processes' memory are none that valgrind sees.
    timeout 300 mpirun "${options[@]}" --mca mpi_yield_when_idle 1 \
        --mca btl_vader_single_copy_mechanism none -n "$ranks" \
        -x LD_PRELOAD="$library" -x LAGGARD_TRACE_DIR="$trace" \
        valgrind --tool="$tool" --xml=yes --xml-file="$work/$tool-$name-$ranks-%p.xml" \
        "$work/$name" "$@" \
        >"$work/log" 2>&1 || { echo "$tool: $name failed"; cat "$work/log"; failed=1; }
    ls "$trace"/*.lgt >/dev/null || failed=1
    local file
    for file in "$work/$tool-$name-$ranks"-*.xml; do
        awk 'BEGIN { RS = "</error>" } /liblaggard/ { print; found = 1 } END { exit found }' \
            "$file" || failed=1
    done
}

if [ "${1:-memory}" = memory ]; then
    readers
    recorded memcheck 1 soak.c 4000
    recorded memcheck 2 threads.c
fi
if [ "${1:-threads}" = threads ]; then
    recorded helgrind 2 threads.c
fi
[ $failed -eq 0 ] && echo "nothing found"
exit $failed
