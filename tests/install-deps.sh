#!/usr/bin/env bash
# Looks for what building, the demonstration or the tests need, and installs what is
# missing where it may: as root, or with a sudo that asks for no password, with apt-get.
# Anywhere else it prints the one line to run, and fails.
#
# Usage: install-deps.sh build|mpich|demo|slurm|test
#
# Debian's mpich beside its openmpi leaves the plain names (mpicc, mpirun) to Open MPI, unless
# someone chose otherwise (update-alternatives --config mpi).
set -euo pipefail

missing=()

# need PACKAGE COMMAND...: the package is missing if the command fails.
need() {
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}

has() { command -v "$1"; }

# The C interface; libclang-cpp is another library.
has_libclang() {
    compgen -G '/usr/lib/llvm-*/lib/libclang.so*' ||
        compgen -G '/usr/lib/llvm-*/lib/libclang-[0-9]*.so*' ||
        compgen -G '/usr/lib*/libclang.so*' || [ -n "${LIBCLANG_PATH:-}" ]
}

has_mpi4py() {
    local python
    for python in /usr/bin/python3 python3; do
        "$python" -c 'import mpi4py' && return 0
    done
    return 1
}

has_venv() { python3 -c 'import ensurepip, venv'; }

has_shmem() { compgen -G '/usr/lib/*/openmpi/include/shmem.h' && has oshcc; }

has_scalapack_tests() { compgen -G '/usr/lib/*/scalapack/openmpi-tests/xdlu'; }

needs_of_build() {
    need gcc has gcc
    need libc6-dev test -e /usr/include/stdio.h
    need libclang-dev has_libclang
    need libopenmpi-dev has "${MPICC:-mpicc}"
    need openmpi-bin has mpirun
}

# To build for MPICH, and to run with it.
needs_of_mpich() {
    need gcc has gcc
    need libc6-dev test -e /usr/include/stdio.h
    need libclang-dev has_libclang
    need libmpich-dev test -e /usr/include/"$(gcc -dumpmachine)"/mpich/mpi.h
    need mpich has mpicc.mpich
    need mpich has mpirun.mpich
}

needs_of_demo() {
    needs_of_build
    need hpcc has hpcc
}

needs_of_test() {
    needs_of_demo
    needs_of_mpich
    need binutils has nm
    need chromium has chromium
    need clang has clang
    need eztrace has eztrace
    need g++ has g++
    need gfortran has gfortran
    need hostname has hostname
    need iproute2 has ip
    need lammps has lmp
    need libomp-dev compgen -G '/usr/lib/llvm-*/lib/libomp.so'
    need libopenmpi-dev has_shmem
    need libotf2-trace-dev test -e /usr/include/otf2/otf2.h
    need mount has mount
    need nodejs has node
    need otf2-tools has otf2-print
    need python3-mpi4py has_mpi4py
    need python3-otf2 /usr/bin/python3 -c 'import _otf2'
    need python3-venv has_venv
    need scalapack-mpi-test has_scalapack_tests
    need util-linux has nsenter
    need valgrind has valgrind
}

# A Slurm of one node. Its packages start no service where there is no init system; elsewhere theirs
# stay without a configuration, and do nothing.
needs_of_slurm() {
    export PATH=$PATH:/usr/sbin:/sbin
    needs_of_build
    need munge has munged
    need slurm-client has sbatch
    need slurm-wlm-basic-plugins compgen -G '/usr/lib/*/slurm-wlm/mpi_pmix.so'
    need slurmctld has slurmctld
    need slurmd has slurmd
}

case "${1:-}" in
build | mpich | demo | slurm | test) "needs_of_$1" ;;
*)
    echo "usage: $0 build|mpich|demo|slurm|test" >&2
    exit 2
    ;;
esac

if ! command -v cargo >/dev/null; then
    echo "Rust is missing (1.85 or newer). Run: curl https://sh.rustup.rs -sSf | sh" >&2
    exit 1
fi

# Other people's readers of what is exported, from PyPI, where cargo builds.
python_packages() {
    local here target python
    here=$(dirname "${BASH_SOURCE[0]}")
    target=${CARGO_TARGET_DIR:-$here/../target}
    python=$target/python
    if cmp -s "$here/python-requirements.txt" "$python/installed.txt"; then
        return 0
    fi
    echo "Installing Python packages for the tests into $python"
    rm -rf "$python"
    if mkdir -p "$target" && python3 -m venv "$python" &&
        "$python/bin/pip" install -q --disable-pip-version-check \
            -r "$here/python-requirements.txt"; then
        cp "$here/python-requirements.txt" "$python/installed.txt"
        return 0
    fi
    echo "Missing: the packages of tests/python-requirements.txt, in $python" >&2
    exit 1
}

finish() {
    if [ "$1" = test ]; then
        python_packages
    fi
    exit 0
}

if [ ${#missing[@]} -eq 0 ]; then
    finish "$1"
fi

install="apt-get install -y --no-install-recommends ${missing[*]}"
privileged=()
if [ "$(id -u)" -ne 0 ]; then
    privileged=(sudo -n)
fi
if command -v apt-get >/dev/null && "${privileged[@]}" true 2>/dev/null; then
    echo "Installing what is missing: ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    "${privileged[@]}" apt-get update -q || true
    if "${privileged[@]}" env DEBIAN_FRONTEND=noninteractive $install; then
        finish "$1"
    fi
fi
echo "Missing: ${missing[*]}. Run: sudo $install" >&2
exit 1
