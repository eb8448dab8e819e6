#!/usr/bin/env bash
# Checkers of memory and threads over what reads hostile bytes and over what lives in other
# people's programs.
#
# Usage: checkers.sh STEP...
#   quick      the trace format's unit tests and a recorded program, under memcheck
#   memory     the tests of the format, the call paths and the collector, and recorded
#              programs, under memcheck
#   threads    recorded programs whose threads all call MPI, under helgrind
#   sanitizers all readers' unit tests, and hostile input for them, with the address sanitizer
#
# MPI libraries have reports of their own. Of a recorded program an error counts if the
# collector is the innermost of its code in one of the error's stacks: it read or wrote
# there, or made the memory that is misused; a race counts if both sides are the collector.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)
built=${CARGO_TARGET_DIR:-$root/target}
cargo=${CARGO:-cargo}
library=${LAGGARD_LIB:-$built/release/liblaggard.so}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# Changed inputs make a test long, and a checker makes it 30 times longer.
export PROPTEST_CASES=${PROPTEST_CASES:-4}

fail() {
    echo "FAILED: $*"
    failed=1
}

# executables CARGO-ARGUMENT...: the test executables, which are built.
executables() {
    local messages=$work/messages
    if ! (cd "$root" && $cargo test --release --no-run --message-format=json "$@") \
        >"$messages" 2>"$work/log"; then
        cat "$work/log" >&2
        return 1
    fi
    # Not the examples, which are built with them.
    sed -n '/"profile":{[^}]*"test":true}/ s/.*"executable":"\([^"]*\)".*/\1/p' "$messages"
}

# unit_tests CARGO-ARGUMENT...: nothing is read that is not there, nothing is lost.
unit_tests() {
    local found executable log=$work/log
    found=$(executables "$@") || fail "cargo test --no-run $*"
    [ -n "$found" ] || fail "$*: no tests"
    for executable in $found; do
        echo "memcheck: $(basename "$executable")"
        # Left out is the test that forgets a writer, as a kill does: what it had is lost.
        if ! (cd "$root" && timeout 900 valgrind -q --error-exitcode=9 --leak-check=full \
            --errors-for-leak-kinds=definite --show-leak-kinds=definite \
            "$executable" --test-threads=1 --skip a_killed_writer) >"$log" 2>&1; then
            cat "$log"
            fail "$executable"
        fi
        grep '^test result' "$log"
    done
}

# of_collector TOOL FILE: the errors in valgrind's file that count; fails if there are any.
of_collector() {
    awk -v tool="$1" '
        # The innermost frame, but for the C library, and the innermost with a source of ours.
        /<error>/ { text = ""; ours = 0; others = 0; listed = 0; is_inside = 1 }
        /<stack>/ { is_innermost = 1; is_first = 1 }
        is_innermost && /<obj>/ && !/(vgpreload_|\/libc\.so|\/libpthread|\/ld-linux)/ {
            if (/\/liblaggard\.so/) ours++; else others++
            is_innermost = 0
        }
        is_first && /<file>/ && !/<file>library\// {
            if (/>thread\.rs</) listed++
            is_first = 0
        }
        is_inside && /<(what|text|auxwhat|fn|file)>/ {
            line = $0
            gsub(/<[^>]*>/, "", line)
            text = text "\n" line
        }
        is_inside && /<line>/ {
            gsub(/[^0-9]/, "")
            text = text ":" $0
        }
        /<\/error>/ {
            is_inside = 0
            # The list of threads is under a lock of the standard library, and an MPI library
            # synchronises with atomics: helgrind sees neither.
            if (tool == "helgrind" && (others || listed)) ours = 0
            if (ours) { print text "\n"; any = 1 }
        }
        END { exit any }' "$2"
}

# recorded TOOL RANKS PROGRAM ARGUMENT...: a program of tests/programs with the collector.
recorded() {
    local tool=$1 ranks=$2 source=$3 options=(--oversubscribe)
    shift 3
    [ "$(id -u)" -ne 0 ] || options+=(--allow-run-as-root)
    local name=$tool-$(basename "$source" .c)-$ranks
    echo "$tool: $source $* on $ranks ranks"
    # Where valgrind takes a debugger's place, Open MPI's way through other processes' memory
    # writes what valgrind does not see.
    if ! mpicc -O1 -g -pthread "$here/programs/$source" -o "$work/$name" ||
        ! timeout 300 mpirun "${options[@]}" --mca mpi_yield_when_idle 1 \
            --mca btl_vader_single_copy_mechanism none -n "$ranks" \
            -x LD_PRELOAD="$library" -x LAGGARD_TRACE_DIR="$work/trace-$name" \
            valgrind --tool="$tool" "${OPTIONS[@]}" --xml=yes --xml-file="$work/$name-%p.xml" \
            "$work/$name" "$@" </dev/null >"$work/log" 2>&1; then
        cat "$work/log"
        fail "$name"
        return
    fi
    local file whole=0
    for file in "$work/$name"-*.xml; do
        of_collector "$tool" "$file" || fail "$name"
        # Processes that do not run to their end are those that valgrind does not follow.
        ! grep -q '</valgrindoutput>' "$file" || whole=$((whole + 1))
    done
    [ "$whole" -eq "$ranks" ] || fail "$name: $whole of $ranks ranks were checked to the end"
    compgen -G "$work/trace-$name/*.lgt" >/dev/null || fail "$name: not recorded"
}

memory_of_programs() {
    OPTIONS=(--leak-check=full --show-leak-kinds=definite --track-origins=yes)
    local arguments
    while read -r -a arguments; do
        recorded memcheck "${arguments[@]}"
    done
}

threads() {
    OPTIONS=(--history-level=full)
    recorded helgrind 2 attacks/threads.c
    recorded helgrind 2 attacks/periodic.c threads
}

sanitized() {
    local sanitizer=$1
    shift
    local machine
    machine=$(rustc -vV | sed -n 's/^host: //p')
    echo "$sanitizer sanitizer: $*"
    # The pool of threads is there until the end; addresses wrap in the reader of symbols.
    echo 'leak:rayon_core' >"$work/kept"
    # The compiler has them for every toolchain and names them unstable.
    if ! (cd "$root" && RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$built/$sanitizer \
        LSAN_OPTIONS=suppressions=$work/kept:print_suppressions=0 \
        RUSTFLAGS="-Zsanitizer=$sanitizer -Cforce-frame-pointers=yes" $cargo test \
        --config profile.dev.package.addr2line.overflow-checks=false --target "$machine" "$@") \
        >"$work/log" 2>&1; then
        cat "$work/log"
        fail "$sanitizer sanitizer: $*"
    fi
    grep '^test result' "$work/log"
}

for step in "$@"; do
    case $step in
    quick)
        unit_tests -p laggard-trace --lib
        memory_of_programs <<<"1 attacks/soak.c 800"
        ;;
    memory)
        unit_tests -p laggard-trace
        # The other tests of call paths run on stacks that no checker knows of.
        unit_tests -p laggard-callpath -p laggard-collector --lib
        memory_of_programs <<'PROGRAMS'
1 attacks/soak.c 8000
2 attacks/threads.c
2 attacks/periodic.c threads
PROGRAMS
        ;;
    threads) threads ;;
    sanitizers)
        # The thread sanitizer needs a standard library that was built with it.
        # A process in which both the collector and the sanitizer stand in for others does not start.
        sanitized address --lib -p laggard-trace -p laggard-otf2 -p laggard-tables \
            -p laggard-report -p laggard-baselines -p laggard-patterns -p laggard-engine \
            -p laggard-comm -p laggard-export
        sanitized address -p laggard-fuzz --test replay
        ;;
    *)
        echo "usage: $0 quick|memory|threads|sanitizers..." >&2
        exit 2
        ;;
    esac
done
[ $failed -ne 0 ] || echo "$*: nothing found"
exit $failed
