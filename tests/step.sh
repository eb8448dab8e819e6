#!/usr/bin/env bash
# Steps of a long check, each of which runs whatever became of those before it.
#
# Usage: step.sh LIST NAME COMMAND...   runs the command; what fails of it goes to the list
#        step.sh LIST                   tells what failed in all steps; fails if anything did
#
# Of `cargo test` the tests that failed are listed, each with its executable. A few that failed
# beside others run twice more, one after the other: a test that then passes both times met a busy
# machine, which is told in the end and fails nothing.
set -uo pipefail

# Beyond so many it is not the machine.
most_repeated=8

list=$1
shift

# A heading and what it is about, if anything.
tell() {
    [ -s "$2" ] || return 1
    echo
    echo "$(wc -l <"$2") $1:"
    sed 's/^/    /' "$2"
}

if [ $# -eq 0 ]; then
    tell "failed beside other tests and passed twice alone" "$list.alone"
    ! tell "failed" "$list"
    exit
fi

name=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What of a log of `cargo test` failed: it tells which executable runs, and then how its tests
# ended, if it comes to that. A test that prints ends its own line, and is told again with what it said.
failed_in() {
    awk -v step="$name" '
        function fail(what) { if (!told[what]++) print step ": " what }
        function leave() { if (running && !ended) fail(running " did not run to its end") }
        /^ *(Running|Doc-tests) / {
            leave()
            running = $2 == "unittests" ? $3 : $2
            ended = 0
        }
        /^test .* \.\.\. FAILED$/ || /^---- .* stdout ----$/ { fail(running " " $2) }
        /^test result: / { ended = 1 }
        END { leave() }' "$1"
}

# Runs those tests of the command that are given, one after the other.
run_alone() {
    local words=() between=--
    for word in "${command[@]}"; do
        [ "$word" = -- ] && between=
        words+=("$word")
    done
    "${words[@]}" ${between:+--} --exact --test-threads=1 "$@"
}

command=("$@")
echo "$name: $*"
"$@" 2>&1 | tee "$work/log" && exit 0

failed_in "$work/log" >"$work/failed"
if ! [ -s "$work/failed" ]; then
    echo "$name" >>"$list"
    exit 0
fi
mapfile -t tests < <(sed -n 's/.* \([^ ]*\)$/\1/p' "$work/failed" | sort -u)
if grep -q 'did not run to its end$' "$work/failed" || [ ${#tests[@]} -gt $most_repeated ]; then
    cat "$work/failed" >>"$list"
    exit 0
fi
: >"$work/again"
for time in first second; do
    echo "$name, the $time time alone: ${tests[*]}"
    if ! run_alone "${tests[@]}" >"$work/log" 2>&1; then
        cat "$work/log"
        failed_in "$work/log" >"$work/now"
        # What cannot be told stays failed.
        [ -s "$work/now" ] && cat "$work/now" >>"$work/again" || cat "$work/failed" >>"$work/again"
    fi
    # Nor did those pass that did not run: the name of a documentation test is not all that finds it.
    for test in "${tests[@]}"; do
        grep -qF "test $test ..." "$work/log" ||
            grep -F " $test" "$work/failed" >>"$work/again"
    done
done
sort -u "$work/again" >>"$list"
grep -vxFf "$work/again" "$work/failed" >>"$list.alone"
exit 0
