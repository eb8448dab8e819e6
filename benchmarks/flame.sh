#!/usr/bin/env bash
# A flame graph of the analysis of a trace: where the time of the loop over all calls goes.
#   benchmarks/flame.sh TRACE OUT.svg [options of analyze]
# Needs perf (Debian: linux-perf) and inferno (cargo install inferno).
set -euo pipefail
if [ $# -lt 2 ]; then
    sed -n '2,4s/^# //p' "$0" >&2
    exit 2
fi
trace=$1 out=$2
shift 2
laggard=${LAGGARD_BIN:-$(dirname "$0")/../target/release/laggard}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Timer samples: hardware counters are not everywhere.
perf record -q -e cpu-clock -F 997 --call-graph dwarf,8192 -o "$work/perf.data" -- \
    "$laggard" analyze "$trace" --threads 1 --format none -o "$work/report.json" "$@"
perf script -i "$work/perf.data" 2>/dev/null | inferno-collapse-perf >"$work/folded"
# Only below the rounds, without what is the same in all: stacks stay readable.
sed -n 's/^.*;\(laggard::engine::rounds::Rounds::run;\)/\1/p' "$work/folded" >"$work/rounds"
inferno-flamegraph --title "$(basename "$trace"), $*" --minwidth 0.2 <"$work/rounds" >"$out"
# Share of each function by itself.
awk '{ n = $NF; sub(/ [0-9]+$/, ""); k = split($0, f, ";"); s[f[k]] += n; t += n }
     END { for (k in s) printf "%5.1f %%  %s\n", 100 * s[k] / t, k }' "$work/rounds" |
    sort -rn | head -25
