#!/usr/bin/env bash
# Builds the fuzzer, guided by coverage, and runs it on each target.
#
# Usage: run.sh [SECONDS [TARGET...]]      10 seconds for each target
#
# Works with the stable compiler. Begins with corpus/TARGET, with found/TARGET, and with what
# earlier runs found, which is kept in the build directory. What breaks a target is written
# there, too, and the exit code is 1.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
seconds=${1:-10}
[ $# -gt 0 ] && shift
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    targets=(location node analysis exports anchor archive baseline report rules questions parts packets connections symbols)
fi

# In a directory of its own: all crates are compiled with instrumentation.
built=${CARGO_TARGET_DIR:-$here/../../target}/fuzz
mkdir -p "$built"
built=$(cd "$built" && pwd)
machine=$(rustc -vV | sed -n 's/^host: //p')
flags="-Cforce-frame-pointers=yes -Cpasses=sancov-module"
for argument in level=4 inline-8bit-counters pc-table trace-compares; do
    flags+=" -Cllvm-args=-sanitizer-coverage-$argument"
done
flags+=" -Cdebug-assertions=yes -Coverflow-checks=no"
RUSTFLAGS=$flags CARGO_TARGET_DIR=$built ${CARGO:-cargo} build --release \
    --manifest-path "$here/Cargo.toml" --features coverage --target "$machine" || exit 1
fuzzer=$built/$machine/release/laggard-fuzz

# Readers that take files get them in memory.
LAGGARD_FUZZ_DIR=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")")
export LAGGARD_FUZZ_DIR TMPDIR="$LAGGARD_FUZZ_DIR"
trap 'rm -rf "$LAGGARD_FUZZ_DIR"' EXIT

failed=0
for target in "${targets[@]}"; do
    found=$built/corpus/$target
    broken=$built/broken/$target-
    searched=("$found" "$here/corpus/$target")
    [ ! -d "$here/found/$target" ] || searched+=("$here/found/$target")
    mkdir -p "$found" "$built/broken"
    log=$built/$target.log
    LAGGARD_FUZZ_TARGET=$target "$fuzzer" -max_total_time="$seconds" -timeout=10 \
        -rss_limit_mb=2048 -malloc_limit_mb=1024 -max_len=65536 -len_control=0 \
        -print_final_stats=1 -artifact_prefix="$broken" "${searched[@]}" \
        >"$log" 2>&1
    code=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    inputs=$(find "$found" -type f | wc -l)
    echo "$target: ${runs:-?} executions in $seconds s, $inputs inputs found"
    if [ $code -ne 0 ]; then
        failed=1
        grep -a -B 30 -A 12 -m 1 'SUMMARY:' "$log" | grep -v '^0x'
        echo "$target: BROKEN, see $log"
    fi
done
exit $failed
