#!/usr/bin/env bash
# Lays out what `make build` and `make build-mpich` have made, or takes it away again.
#
# Usage: install.sh install|uninstall DIRECTORY-OF-THE-BUILT-FILES
#
# PREFIX (default /usr/local) is where it is used, DESTDIR what stands before that meanwhile.
# Nothing in an installation knows its prefix: it can be moved as a whole.
set -euo pipefail

what=${1:?install or uninstall}
built=$(cd "${2:?the directory of the built files}" && pwd)
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
prefix=${PREFIX:-/usr/local}
root=${DESTDIR:-}$prefix

# Folders that are ours alone, and files that lie among others'.
folders=(lib/laggard share/doc/laggard share/laggard share/modulefiles/laggard)
files=(
    bin/laggard include/laggard.h include/laggard.f90
    share/bash-completion/completions/laggard share/zsh/site-functions/_laggard
    share/fish/vendor_completions.d/laggard.fish
)

if [ "$what" = uninstall ]; then
    (cd "$root" && rm -rf "${folders[@]}" && rm -f "${files[@]}" share/man/man1/laggard{,-*}.1*)
    exit 0
fi
[ "$what" = install ] || {
    echo "$0: install or uninstall, not $what" >&2
    exit 2
}

command=$built/release/laggard
[ -x "$command" ] || {
    echo "$command is missing: run \`make build\` first" >&2
    exit 1
}

put() {
    local mode=$1 file=$2 target=$root/$3
    mkdir -p "$(dirname "$target")"
    install -m "$mode" "$file" "$target"
}

# Debug information is for those who build it.
put_stripped() {
    put "$@"
    ! command -v strip >/dev/null || strip --strip-unneeded "$root/$3"
}

rm -rf "${folders[@]/#/$root/}"
put_stripped 755 "$command" bin/laggard

# The folder tells for which MPI its libraries are, and so do they.
for libraries in "$built/release" "$built/mpich/release"; do
    [ -f "$libraries/liblaggard.so" ] && [ -f "$libraries/liblaggard_mpi.so" ] || continue
    if grep -q laggard_for_openmpi "$libraries/liblaggard.so"; then
        folder=lib/laggard/openmpi
    else
        folder=lib/laggard/mpich
    fi
    put_stripped 644 "$libraries/liblaggard.so" "$folder/liblaggard.so"
    put_stripped 644 "$libraries/liblaggard_mpi.so" "$folder/liblaggard_mpi.so"
done

put 644 "$source/collector/include/laggard.h" include/laggard.h
put 644 "$source/collector/include/laggard.f90" include/laggard.f90

# Manual pages and completions, from the table that --help is printed from.
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
"$command" write-pages "$pages"
for page in "$pages"/*.1; do
    put 644 "$page" "share/man/man1/$(basename "$page")"
done
put 644 "$pages/laggard.bash" share/bash-completion/completions/laggard
put 644 "$pages/_laggard" share/zsh/site-functions/_laggard
put 644 "$pages/laggard.fish" share/fish/vendor_completions.d/laggard.fish

# The book, in the folders in which its pages know each other, and what these pages link to.
declare -A laid_out
put_page() {
    local page=$1 link file
    [ -z "${laid_out[$page]:-}" ] || return 0
    laid_out[$page]=yes
    put 644 "$source/$page" "share/doc/laggard/$page"
    [[ $page == *.md ]] || return 0
    while read -r link; do
        link=$(realpath -m --relative-to "$source" "$source/$(dirname "$page")/$link")
        # A folder is there with its files.
        while read -r file; do
            put_page "${file#"$source/"}"
        done < <([ ! -e "$source/$link" ] || find "$source/$link" -type f)
    done < <(grep -o ']([^)#: ]*' "$source/$page" | sed -n 's/^](\(..*\)/\1/p')
}
while read -r page; do
    put_page "$page"
done < <(cd "$source" && find README.md CHANGELOG.md LICENSE-* -type f
    cd "$source" && find analyzer collector formats -name '*.md' -o -path '*/docs/*.png')

# The Python package, for `pip install PREFIX/share/laggard/python`.
(cd "$source/formats" && find python -type f ! -path '*/__pycache__/*' ! -path '*.egg-info/*') |
    while read -r file; do
        put 644 "$source/formats/$file" "share/laggard/$file"
    done
sed -i 's,](\.\./,](../../doc/laggard/formats/,g' "$root/share/laggard/python/README.md"

if [ -f "$built/third-party.txt" ]; then
    put 644 "$built/third-party.txt" share/doc/laggard/third-party.txt
fi

version=$("$command" --version | cut -d' ' -f2)
put 644 "$source/analyzer/packaging/modulefile" "share/modulefiles/laggard/$version"
