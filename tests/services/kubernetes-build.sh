#!/usr/bin/env bash
# Build Kubernetes 1.20 from Debian 12's own source package, once: about five minutes on two cores, into a cache folder.
#
#   tests/services/kubernetes-build.sh           install the tools, get the source, build; at once if that was done
#   tests/services/kubernetes-build.sh --check   tell whether it was done
#
# Later releases of Debian have only the client. etcd is taken out of its package. Settings: kubernetes-common.sh.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/services/kubernetes-common.sh
. "$HERE/kubernetes-common.sh"

COMPONENTS="kube-apiserver kube-controller-manager kube-scheduler kubelet"
GO=/usr/lib/go-1.19
# Another number here builds anew.
RECIPE=1

is_built() {
    [ "$(cat "$CACHE/recipe" 2>/dev/null)" = "$RECIPE" ] || return 1
    local program
    for program in $COMPONENTS etcd pause; do
        [ -x "$CACHE/$program" ] || return 1
    done
}

install_tools() {
    install_packages "$GO/bin/go=golang-1.19-go" make=make gcc=gcc /usr/include/stdlib.h=libc6-dev rsync=rsync jq=jq \
        dpkg-source=dpkg-dev
}

private_apt() { # apt-get with the machine's own sources, source packages among them, and a state apart from its own
    apt-get -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$WORK/apt/sources/" \
        -o Dir::State::lists="$WORK/apt/lists" -o Dir::Cache="$WORK/apt/cache" -o APT::Sandbox::User=root -qq "$@"
}

enable_sources() {
    mkdir -p "$WORK"/apt/{sources,lists/partial,cache/archives/partial}
    local file name
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -e "$file" ] || continue
        name=$(basename "$file")
        sed 's/^Types:.*/Types: deb deb-src/' "$file" >"$WORK/apt/sources/$name"
    done
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -e "$file" ] || continue
        name=$(basename "$file" .list)
        sed -n 's/^deb \(.*\)/deb \1\ndeb-src \1/p' "$file" >"$WORK/apt/sources/$name.list"
    done
    private_apt update
}

take_package() { # package, folder: its files, not installed
    (cd "$WORK" && private_apt download "$1" && dpkg-deb -x "$1"_*.deb "$2")
}

get_etcd() {
    # Installed, it would start a service.
    take_package etcd-server etcd
    cp "$WORK/etcd/usr/bin/etcd" "$WORK/bin/"
}

get_source() {
    (cd "$WORK" && private_apt source --download-only kubernetes >/dev/null &&
        dpkg-source --no-check -x kubernetes_*.dsc source >/dev/null)
    # The reflect2 1.0.1 in its vendor folder crashes under Go 1.18 and later, at the first map: Debian's is newer.
    take_package golang-github-modern-go-reflect2-dev reflect2
    local vendored=$WORK/source/vendor/github.com/modern-go/reflect2
    rm -rf "$vendored"
    cp -r "$WORK/reflect2/usr/share/gocode/src/github.com/modern-go/reflect2" "$vendored"
    rm -f "$vendored"/*_test.go
}

compile_components() { # as its debian/rules compiles the client: upstream's make, by GOPATH
    mkdir -p "$WORK/source/.go/src/k8s.io" "$WORK/home"
    ln -s ../../.. "$WORK/source/.go/src/k8s.io/kubernetes"
    local component what=""
    for component in $COMPONENTS; do what+="cmd/$component "; done
    if ! (cd "$WORK/source" && env HOME="$WORK/home" GOPATH="$PWD/.go" GOCACHE="$WORK/gocache" CGO_ENABLED=0 \
        PATH="$GO/bin:$PATH" make WHAT="$what" GOLDFLAGS="-s -w") >"$CACHE/build.log" 2>&1 </dev/null; then
        tail -n 20 "$CACHE/build.log" >&2
        die "it did not compile; the whole is in $CACHE/build.log"
    fi
    for component in $COMPONENTS; do cp -L "$WORK/source/_output/bin/$component" "$WORK/bin/"; done
}

compile_pause() { gcc -O2 -static -o "$WORK/bin/pause" "$HERE/pause.c"; }

build() {
    WORK=$(mktemp -d "${TMPDIR:-/var/tmp}/kubernetes-build.XXXXXX") # 3 GB
    trap 'rm -rf "$WORK"' EXIT
    mkdir -p "$WORK/bin"
    install_tools
    enable_sources
    say "getting the source"
    get_etcd
    get_source
    say "compiling: some minutes"
    compile_pause
    compile_components
    cp "$WORK"/bin/* "$CACHE/"
    echo "$RECIPE" >"$CACHE/recipe"
    say "built after $SECONDS s: $(du -sh "$CACHE" | cut -f1) in $CACHE"
}

is_debian_12() { grep -q '^VERSION_CODENAME=bookworm$' /etc/os-release 2>/dev/null; }

if is_built; then exit 0; fi
[ "${1:-}" != --check ] || die "not built in $CACHE"
[ "$(id -u)" = 0 ] || die "only root can install the tools that building Kubernetes wants"
is_debian_12 || die "only Debian 12 has the source package: build it there, and copy $CACHE"
mkdir -p "$CACHE"
exec 9>"$CACHE/lock"
flock 9
is_built || build
