#!/usr/bin/env bash
# Makes a package of what was built: a tarball that is unpacked anywhere, or a Debian package.
#
# Usage: dist.sh tarball|debian DIRECTORY-OF-THE-BUILT-FILES
#
# Prints the name of the file, which lies in dist below that directory. DEBFULLNAME and DEBEMAIL name
# who makes the Debian package.
set -euo pipefail

kind=${1:?tarball or debian}
built=$(cd "${2:?the directory of the built files}" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=$("$built/release/laggard" --version | cut -d' ' -f2)
dist=$built/dist
mkdir -p "$dist"
stage=$(mktemp -d "$dist/stage-XXXX")
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"

# Files belong to nobody in particular, and are as old as the last change.
dated=$(git -C "$here" log -1 --format=%ct 2>/dev/null || date +%s)

case $kind in
tarball)
    name=laggard-$version-$(uname -m)-linux
    PREFIX=/$name DESTDIR=$stage "$here/install.sh" install "$built"
    file=$dist/$name.tar.gz
    tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$dated" -c "$name" |
        gzip -9n >"$file"
    ;;
debian)
    PREFIX=/usr DESTDIR=$stage "$here/install.sh" install "$built"
    documents=$stage/usr/share/doc/laggard
    maintainer="${DEBFULLNAME:-The authors of laggard} <${DEBEMAIL:-laggard@localhost.localdomain}>"
    gzip -9n "$stage"/usr/share/man/man1/*.1
    {
        echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
        echo "Upstream-Name: laggard"
        echo
        echo "Files: *"
        grep -m 1 Copyright "$documents/LICENSE-MIT" | sed 's/ *(c)/:/'
        echo "License: MIT or Apache-2.0"
        echo " Both texts are beside this file: LICENSE-MIT, LICENSE-APACHE. The libraries of others"
        echo " that are linked in are in third-party.txt."
    } >"$documents/copyright"
    {
        echo "laggard ($version) unstable; urgency=medium"
        echo
        echo "  * CHANGELOG.md, beside this file, says what users notice."
        echo
        echo " -- $maintainer  $(date -R -u -d "@$dated")"
    } | gzip -9n >"$documents/changelog.gz"
    # The C library of the machine that built it is the oldest that serves.
    libc=$(objdump -T "$stage"/usr/bin/laggard "$stage"/usr/lib/laggard/*/*.so |
        grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
    architecture=$(dpkg --print-architecture)
    mkdir "$stage/DEBIAN"
    cat >"$stage/DEBIAN/control" <<END
Package: laggard
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Section: devel
Priority: optional
Installed-Size: $(du -sk "$stage/usr" | cut -f1)
Depends: libc6 (>= ${libc#GLIBC_}), libgcc-s1
Suggests: openmpi-bin | mpich
Description: says who a parallel program is waiting for
 A preloaded library records what every rank of an MPI or OpenSHMEM program
 did. An analyzer finds the calls that took longer than they should, and names
 the cause: which operation, at which source line, because of whom.
 .
 It opens reports and traces without any MPI.
END
    file=$dist/laggard_${version}_$architecture.deb
    SOURCE_DATE_EPOCH=$dated dpkg-deb --root-owner-group --build "$stage" "$file" >&2
    ;;
*)
    echo "$0: tarball or debian, not $kind" >&2
    exit 2
    ;;
esac
echo "$file"
