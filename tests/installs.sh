#!/usr/bin/env bash
# Tries what `make dist` and `make deb` made on new systems: without MPI, with Open MPI, with MPICH,
# with both. Each is a root of its own, made by debootstrap from the archive that this system uses.
#
# Usage: installs.sh DIRECTORY-OF-THE-BUILT-FILES [SYSTEM...]
#
# Needs root, debootstrap, and the compilers of both MPIs. Takes minutes and 2 GB there.
set -euo pipefail

built=$(cd "${1:?the directory of the built files}" && pwd)
shift
systems=("${@:-none openmpi mpich both}")
[ $# -gt 0 ] || systems=(none openmpi mpich both)
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
        exec chroot --userspec="$user" "$root" /usr/bin/env -i HOME=/tmp/home LC_ALL=C.UTF-8 \
            PATH=/tmp/laggard/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin \
            OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 "$@"
    ' inside "$root" "$user" "$@"
}

user() { inside nobody:nogroup bash -euc "cd /tmp/home; $1"; }

say() { echo "$system: $1"; }

# What a report says, but for what the agents of its analysis say of themselves.
same() {
    user "laggard show $1 | grep -v 'read by' >a; laggard show $2 | grep -v 'read by' >b; cmp a b"
}

# tried LAUNCHER PROGRAM NAME: records, analyses with 1, 2 and 3 agents, and measures.
tried() {
    user "laggard run -o $3 -- $1 -n 4 /tmp/programs/$2" >"$work/said" 2>&1 ||
        { cat "$work/said"; return 1; }
    grep -q "trace in $3 (4 files" "$work/said"
    user "laggard analyze -q $3 -o $3.1.json"
    for agents in 2 3; do
        user "$1 -n $agents laggard analyze -q $3 -o $3.$agents.json"
        same "$3.1.json" "$3.$agents.json"
    done
    user "laggard show $3.1.json" | grep -q 'Late sender'
    user "$1 -n 2 laggard baseline -q --time 2 --max-bytes 64 --only MPI_Recv -o $3.table.json"
    say "recorded, analysed and measured with $1"
}

# A trace and its report, from here.
programs=$work/programs
rm -rf "$programs"
mkdir -p "$programs"
for mpi in openmpi mpich; do
    suffix=$([ $mpi = mpich ] && echo .mpich || true)
    "mpicc$suffix" -O1 -g "$here/programs/late_sender_sendrecv_ring.c" -o "$programs/$mpi" -lm
done
"$built/release/laggard" run -o "$programs/trace" -- \
    mpirun --allow-run-as-root --oversubscribe -n 4 "$programs/openmpi" >/dev/null 2>&1
"$built/release/laggard" analyze -q "$programs/trace" -o "$programs/report.json"

for system in ${systems[@]}; do
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
    cp -r "$programs" "$root/tmp/programs"
    mkdir "$root/tmp/home" "$root/tmp/unpacked"
    tar -xzf "$tarball" -C "$root/tmp/unpacked"
    ln -s unpacked/"$(basename "$tarball" .tar.gz)" "$root/tmp/laggard"
    chown -R nobody:nogroup "$root/tmp/home" "$root/tmp/programs"

    # Whatever the MPI: reports and traces.
    user 'laggard show /tmp/programs/report.json --html page.html' | grep -q 'Late sender'
    user 'grep -q "Late sender" page.html'
    user 'laggard analyze -q /tmp/programs/trace -o again.json'
    same again.json /tmp/programs/report.json
    user 'laggard dump /tmp/programs/trace' | grep -q MPI_Sendrecv
    say "$(user 'laggard --version') shows a report and analyses a trace"

    case $system in
    none)
        ! user 'ldconfig -p' | grep -q libmpi
        # The package needs no MPI either, and goes as it came.
        cp "$package" "$root/tmp/laggard.deb"
        inside root:root dpkg -i /tmp/laggard.deb >/dev/null
        user 'test "$(/usr/bin/laggard --version)" = "$(laggard --version)"'
        user '/usr/bin/laggard show /tmp/programs/report.json' | grep -q 'Late sender'
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
