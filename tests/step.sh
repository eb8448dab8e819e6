#!/usr/bin/env bash
# Steps of a long check, each of which runs whatever became of those before it.
#
# Usage: step.sh LIST NAME COMMAND...   runs the command; what fails of it goes to the list
#        step.sh LIST                   tells what failed in all steps; fails if anything did
#
# Of `cargo test` the tests that failed are listed, each with its executable.
set -uo pipefail

list=$1
shift

if [ $# -eq 0 ]; then
    [ -s "$list" ] || exit 0
    echo
    echo "$(wc -l <"$list") failed:"
    sed 's/^/    /' "$list"
    exit 1
fi

name=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "$name: $*"
"$@" 2>&1 | tee "$log" && exit 0

# Cargo tells which executable runs, and that how its tests ended, if it comes to that.
awk -v step="$name" '
    function fail(what) { print step ": " what; any = 1 }
    function leave() { if (running && !ended) fail(running " did not run to its end") }
    /^ *(Running|Doc-tests) / {
        leave()
        running = $2 == "unittests" ? $3 : $2
        ended = 0
    }
    /^test .* \.\.\. FAILED$/ { fail(running " " $2) }
    /^test result: / { ended = 1 }
    END { leave(); exit !any }' "$log" >>"$list" || echo "$name" >>"$list"
exit 0
