#!/usr/bin/env bash
# Tries what `make dist` and `make deb` made on new systems: without MPI, with Open MPI, with MPICH,
# with both. Each is a root of its own, made by debootstrap from the archive that this system uses.
# Then the tarball meets MPIs that it was not built with (`wheels`): those that PyPI has.
#
# Usage: installs.sh DIRECTORY-OF-THE-BUILT-FILES [SYSTEM...]
#
# Needs root, debootstrap, and the compilers of both MPIs. Takes minutes and 2 GB there.
set -eEuo pipefail

built=$(cd "${1:?the directory of the built files}" && pwd)
shift
systems=("$@")
[ $# -gt 0 ] || systems=(none openmpi mpich both wheels)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tarball=$(ls -t "$built"/dist/laggard-*.tar.gz | head -n 1)
package=$(ls -t "$built"/dist/laggard_*.deb | head -n 1)
work=$built/installs
mkdir -p "$work"

if ! command -v debootstrap >/dev/null; then
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends debootstrap >/dev/null
fi

# A system without anything, made once.
base=$work/base
if [ ! -e "$base.done" ]; then
    read -r mirror suite < <(apt-get indextargets --format '$(SITE) $(CODENAME)' \
        'Created-By: Packages' | head -n 1)
    rm -rf "$base"
    debootstrap --variant=minbase "$suite" "$base" "$mirror" >"$work/debootstrap.log"
    touch "$base.done"
fi

# inside USER COMMAND...: runs it in the system $root, which sees its own processes only.
inside() {
    local user=$1
    shift
    unshare --mount --pid --fork --propagation private -- bash -euc '
        root=$1 user=$2
        shift 2
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount --rbind /sys "$root/sys"
        exec chroot --userspec="$user" "$root" /usr/bin/env -i HOME=/tmp/home LC_ALL=C.UTF-8 \
            PATH=/tmp/laggard/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin \
            OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 "$@"
    ' inside "$root" "$user" "$@"
}

user() { inside nobody:nogroup bash -euc "cd /tmp/home; $1"; }

say() { echo "$system: $1"; }

# Reports are the same, but for what the agents of an analysis say of themselves.
equal() {
    python3 - "$@" <<'END'
import json, sys
one, other = (json.load(open(name)) for name in sys.argv[1:])
del one["agents"], other["agents"]
sys.exit(one != other)
END
}

same() { equal "$root/tmp/home/$1" "$root/tmp/home/$2"; }

# tried LAUNCHER PROGRAM NAME: records, analyses with 1, 2 and 3 agents, and measures.
tried() {
    user "laggard run -o $3 -- $1 -n 4 $programs/$2" >"$work/said" 2>&1 ||
        { cat "$work/said"; return 1; }
    grep -q "trace in $3 (4 files" "$work/said"
    user "laggard analyze -q $3 -o $3.1.json"
    for agents in 2 3; do
        user "$1 -n $agents laggard analyze -q $3 -o $3.$agents.json"
        same "$3.1.json" "$3.$agents.json"
    done
    user "laggard show $3.1.json" | grep 'Late sender' >/dev/null
    user "$1 -n 2 laggard baseline -q --time 2 --max-bytes 64 --only MPI_Recv -o $3.table.json"
    say "recorded, analysed and measured with $1"
}

# A trace and its report, from here. Source lines are found in a program at the same place only.
programs=$(mktemp -d /tmp/laggard-installs-XXXX)
trap 'rm -rf "$programs"' EXIT
chmod 755 "$programs"
for mpi in openmpi mpich; do
    suffix=$([ $mpi = mpich ] && echo .mpich || true)
    "mpicc$suffix" -O1 -g "$here/programs/late_sender_sendrecv_ring.c" -o "$programs/$mpi" -lm
done
"$built/release/laggard" run -o "$programs/trace" -- \
    mpirun --allow-run-as-root --oversubscribe -n 4 "$programs/openmpi" >/dev/null 2>&1
"$built/release/laggard" analyze -q "$programs/trace" -o "$programs/report.json"

# wheel NAME LIBRARIES LAUNCHER PROGRAM: the tarball with an MPI of another version or vendor.
wheel() {
    local directory=$work/wheels/$1 laggard=$work/wheels/laggard/bin/laggard said
    python3 -m venv "$directory"
    "$directory/bin/pip" install -q --disable-pip-version-check --no-deps "$2"
    # The first has a compiler, for programs of all with its interface.
    local program=$programs/$4
    [ -x "$program" ] || PATH=$directory/bin:$PATH mpicc -O1 -g -o "$program" \
        "$here/programs/late_sender_sendrecv_ring.c" -lm
    (
        export PATH=$directory/bin:$PATH LD_LIBRARY_PATH=$directory/lib
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        cd "$directory"
        "$laggard" run -o trace -- mpirun $3 -n 4 "$program" >said 2>&1 || { cat said; exit 1; }
        grep -q 'trace in trace (4 files' said
        "$laggard" analyze trace --format none -o 1.json
        for agents in 2 3; do
            mpirun $3 -n $agents "$laggard" analyze -q trace -o $agents.json
            equal 1.json $agents.json
        done
        mpirun $3 -n 2 "$laggard" baseline -q --time 2 --max-bytes 64 --only MPI_Recv
        grep -q Recv baseline.json
    )
    said=$(grep -o '"mpi_library": *"[^"]*' "$directory/baseline.json" | sed 's/.*"//')
    say "recorded, analysed and measured with $said"
}

wheels() {
    system=wheels
    rm -rf "$work/wheels"
    mkdir -p "$work/wheels/laggard"
    tar -xzf "$tarball" -C "$work/wheels/laggard" --strip-components 1
    wheel mpich mpich==5.0.2 "" mpich5
    wheel impi impi-rt==2021.19.0 "" mpich5
    wheel openmpi openmpi==5.0.11 --oversubscribe openmpi
    rm -rf "$work/wheels"
}

# Without root, into a prefix of the user's.
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
if as_nobody test -r "$built/release/laggard" -a -r "$here/../analyzer/packaging/install.sh"; then
    prefix=$(as_nobody mktemp -d /tmp/laggard-prefix-XXXX)
    for what in install uninstall; do
        PREFIX=$prefix as_nobody "$here/../analyzer/packaging/install.sh" $what "$built"
        [ $what = uninstall ] || as_nobody "$prefix/bin/laggard" --version >/dev/null
    done
    [ -z "$(find "$prefix" -type f)" ]
    rm -rf "$prefix"
    echo "installed and removed by a user"
else
    echo "SKIPPED: users may not read $built" >&2
fi

trap 'echo "installs: failed with $system, at line $LINENO" >&2' ERR
for system in "${systems[@]}"; do
    if [ "$system" = wheels ]; then
        wheels
        continue
    fi
    root=$work/$system
    rm -rf "$root"
    cp -a "$base" "$root"
    case $system in
    none) packages="" ;;
    openmpi) packages="openmpi-bin" ;;
    mpich) packages="mpich" ;;
    both) packages="openmpi-bin mpich" ;;
    esac
    if [ -n "$packages" ]; then
        inside root:root apt-get install -y --no-install-recommends $packages \
            >"$work/$system.log" 2>&1
    fi
    cp -r "$programs" "$root/tmp"
    mkdir "$root/tmp/home" "$root/tmp/unpacked"
    tar -xzf "$tarball" -C "$root/tmp/unpacked"
    ln -s unpacked/"$(basename "$tarball" .tar.gz)" "$root/tmp/laggard"
    chown -R nobody:nogroup "$root/tmp/home" "$root$programs"

    # Whatever the MPI: reports and traces.
    user "laggard show $programs/report.json" | grep 'Late sender' >/dev/null
    user "laggard show $programs/report.json --html page.html >said; grep -q 'Late sender' page.html"
    user "laggard analyze -q $programs/trace -o again.json"
    same again.json "../${programs#/tmp/}/report.json"
    user "laggard dump $programs/trace" | grep MPI_Sendrecv >/dev/null
    say "$(user 'laggard --version') shows a report and analyses a trace"

    case $system in
    none)
        ! user 'ldconfig -p' | grep libmpi
        # The package needs no MPI either, and goes as it came.
        cp "$package" "$root/tmp/laggard.deb"
        inside root:root dpkg -i /tmp/laggard.deb >/dev/null
        user 'test "$(/usr/bin/laggard --version)" = "$(laggard --version)"'
        user "/usr/bin/laggard show $programs/report.json" | grep 'Late sender' >/dev/null
        inside root:root dpkg -P laggard >/dev/null 2>&1
        [ -z "$(find "$root/usr" -name '*laggard*')" ]
        say "the Debian package came and went"
        ;;
    openmpi)
        tried mpirun openmpi ring
        # From another place, by a user.
        user 'mkdir moved; cp -r /tmp/unpacked/* moved; mv moved/* "moved/to here"'
        user 'mpirun -n 2 "moved/to here/bin/laggard" analyze -q ring -o moved.json'
        same moved.json ring.1.json
        # Agents of the other MPI say what they lack.
        user 'PMI_RANK=0 PMI_SIZE=2 MPI_LOCALNRANKS=2 laggard analyze -q ring -o no.json 2>&1 || true' |
            grep -q 'the library of MPICH cannot be loaded'
        ;;
    mpich) tried mpirun mpich ring ;;
    both)
        tried mpirun.openmpi openmpi ring1
        tried mpirun.mpich mpich ring2
        # Agents of one read the traces of the other.
        user 'mpirun.mpich -n 2 laggard analyze -q ring1 -o crossed.json'
        same crossed.json ring1.1.json
        ;;
    esac
    rm -rf "$root"
done
echo "installs: all well"
