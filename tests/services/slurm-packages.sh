#!/usr/bin/env bash
# Unpack a newer Slurm from Debian's packages, with all its libraries, into a cache folder: about a minute, once.
#
#   SLURM_RELEASE=24.11 tests/services/slurm-packages.sh    returns at once if that was done
#
# Nothing of it is installed. The programs run in the file system of this machine, so that jobs see its Python and its
# folders: patchelf points them to the unpacked loader and libraries. Slurm starts its own programs again by
# /proc/self/exe, so calling the loader by a script would not do. Settings: slurm-common.sh.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/services/slurm-common.sh
. "$HERE/slurm-common.sh"

mirror() { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1; }

private_apt() { # apt-get with the suite as its only source, and a state in which nothing is installed
    apt-get -o Dir::Etc::sourcelist="$WORK/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::Etc::preferencesparts=/dev/null -o Dir::State::status="$WORK/status" \
        -o Dir::State::lists="$WORK/lists" -o Dir::Cache="$WORK/cache" -o APT::Sandbox::User=root \
        -o APT::Install-Recommends=0 -o Acquire::Languages=none -qq "$@"
}

unpack() { # into $WORK/root
    mkdir -p "$WORK"/{root,lists/partial,cache/archives/partial}
    touch "$WORK/status"
    [ -n "$(mirror)" ] || apt_get update >&2
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) $SUITE main" >"$WORK/sources.list"
    private_apt update >&2
    private_apt -y --download-only install slurm-wlm slurmdbd >&2 || die "the mirror $(mirror) has no Slurm in $SUITE"
    local package
    for package in "$WORK"/cache/archives/*.deb; do dpkg-deb -x "$package" "$WORK/root"; done
}

adapt() { # the programs into $WORK/bin, by their plain names, for $CACHE as their folder
    local plugins library loader program
    mkdir "$WORK/bin"
    plugins=$(cd "$WORK/root" && dirname "$(find usr/lib -name libslurmfull.so)")
    library=$(dirname "$plugins")
    ln -s "root/$plugins" "$WORK/plugins"
    loader=$(cd "$WORK/root/$library" && ls ld-linux*.so.*)
    for program in $(grep -lr libslurmfull.so "$WORK/root/usr/bin" "$WORK/root/usr/sbin"); do
        # An RPATH, unlike a RUNPATH, holds for plugins and for what these need, too.
        patchelf --set-interpreter "$CACHE/root/$library/$loader" --force-rpath \
            --set-rpath "$CACHE/plugins:$CACHE/root/$library" --output "$WORK/bin/$(basename "$program" -wlm)" "$program"
        chmod +x "$WORK/bin/$(basename "$program" -wlm)"
    done
}

is_there() { [ -x "$CACHE/bin/slurmctld" ]; }

[ -n "$SUITE" ] || die "Slurm $RELEASE is installed, not unpacked"
mkdir -p "$(dirname "$CACHE")"
exec 9>"$CACHE.lock"
flock 9
if is_there; then exit 0; fi
[ "$(id -u)" = 0 ] || die "only root can install what unpacking it wants"
install_packages patchelf=patchelf
say "unpacking Slurm $RELEASE of $SUITE"
WORK=$(mktemp -d "$CACHE.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
unpack
adapt
rm -rf "$WORK/cache" "$WORK/lists"
chmod 755 "$WORK" # other users run its programs
mv "$WORK" "$CACHE"
FOUND=$("$CACHE/bin/slurmctld" -V)
if [[ $FOUND != "slurm-wlm $RELEASE."* ]]; then
    rm -rf "$CACHE"
    die "$SUITE has $FOUND instead of $RELEASE"
fi
say "$FOUND in $CACHE"
