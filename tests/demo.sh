#!/usr/bin/env bash
# Traces a real program, analyses the trace as an MPI job, and prints the report.
#
# Usage: demo.sh DIRECTORY-OF-THE-BUILT-FILES DIRECTORY-TO-WORK-IN
set -euo pipefail

built=$(cd "$1" && pwd)
mkdir -p "$2"
work=$(mktemp -d "$(cd "$2" && pwd)/$(date +%Y%m%d-%H%M%S)-XXXX")
programs=$(cd "$(dirname "${BASH_SOURCE[0]}")/programs" && pwd)

# More ranks than cores is normal for a demonstration; so is a container's root.
mpi=(mpirun --oversubscribe --mca mpi_yield_when_idle 1)
if [ "$(id -u)" -eq 0 ]; then
    mpi+=(--allow-run-as-root)
fi

run() {
    echo "\$ $*"
    "$@" </dev/null
}

cd "$work"
sed -e 's/@P/2/' -e 's/@Q/2/' -e 's/^200 /1000/' "$programs/real/hpccinf.txt" >hpccinf.txt
echo "The HPC Challenge benchmarks on 4 ranks, recorded:"
run "${mpi[@]}" -n 4 -x LD_PRELOAD="$built/liblaggard.so" hpcc
echo
echo "Who did they wait for? Two agents look into it:"
run "${mpi[@]}" -n 2 "$built/laggard" analyze laggard-trace -o report.json
echo
echo "The report as JSON: $work/report.json"
echo "The trace:          $work/laggard-trace ($(du -sh laggard-trace | cut -f1))"
