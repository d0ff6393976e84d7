#!/usr/bin/env bash
# Start a private Docker engine that reaches nothing outside, and give it two images made from what the machine has.
#
#   tests/services/docker-up.sh            install what is missing (apt, as root), start it, make the images
#   eval "$(tests/services/docker-up.sh)"  the same, and set DOCKER_HOST: stdout has only `export` lines
#
# A second call finds the engine running and returns at once. docker-down.sh stops it. Settings: docker-common.sh.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/services/docker-common.sh
. "$HERE/docker-common.sh"
# shellcheck source=tests/services/docker-images.sh
. "$HERE/docker-images.sh"

install_missing() {
    local need=()
    if [ ! -x /usr/sbin/dockerd ] || [ ! -x "$DOCKER" ]; then need+=(docker.io); fi
    [ -x /bin/busybox ] || need+=(busybox-static)
    [ -x "$PYTHON" ] || need+=(python3)
    command -v ip >/dev/null || need+=(iproute2)
    command -v docker-registry >/dev/null || need+=(docker-registry) # to pull from and to push to
    [ ${#need[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || die "missing: ${need[*]}, and there is no apt-get to install them with"
    say "installing ${need[*]}"
    export DEBIAN_FRONTEND=noninteractive
    flock "${TMPDIR:-/tmp}/torchx-tui-apt.lock" apt-get -o DPkg::Lock::Timeout=300 -q update >&2 </dev/null
    # Without what is only recommended: AppArmor, git, cgroupfs-mount.
    flock "${TMPDIR:-/tmp}/torchx-tui-apt.lock" apt-get -o DPkg::Lock::Timeout=300 -q install -y --no-install-recommends "${need[@]}" >&2 </dev/null
}

make_bridge() {
    # Its own bridge: docker0 belongs to whatever other engine is here, and --bridge=none would delete that one's.
    if [ ! -d "/sys/class/net/$BRIDGE" ]; then
        ip link add name "$BRIDGE" type bridge
        ip address add "$NET.0.1/24" dev "$BRIDGE"
    fi
    ip link set "$BRIDGE" up
    # A packet to a container that has gone must not leave the machine by the default route.
    ip route replace unreachable "$NET.0.0/16"
}

start_engine() { # storage driver
    mkdir -p "$DIR/data" "$DIR/exec"
    echo '{}' >"$DIR/daemon.json" # not /etc/docker/daemon.json, whatever may be in it
    rm -f "$SOCK"
    make_bridge
    # Proxies at a closed port: pulling an image that is missing fails at once.
    # A resolver that does not answer: looking up a name in a container fails at once, not after 10 s.
    # No packet filter, masquerading or forwarding: the machine's own stay as they are, containers still reach one
    # another, and their published ports are reached through docker-proxy.
    env HTTP_PROXY=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 NO_PROXY=localhost,127.0.0.0/8 \
        setsid /usr/sbin/dockerd \
        --config-file "$DIR/daemon.json" \
        --host "unix://$SOCK" \
        --data-root "$DIR/data" \
        --exec-root "$DIR/exec" \
        --pidfile "$DIR/dockerd.pid" \
        --storage-driver "$1" \
        --exec-opt native.cgroupdriver=cgroupfs \
        --cgroup-parent "$CGROUP" \
        --bridge "$BRIDGE" \
        --dns 127.0.0.1 --dns-opt timeout:1 --dns-opt attempts:1 \
        --default-address-pool "base=$NET.0.0/16,size=24" \
        --iptables=false --ip6tables=false --ip-masq=false --ip-forward=false \
        --shutdown-timeout 3 \
        --log-level warn \
        >>"$DIR/dockerd.log" 2>&1 </dev/null &
    wait_for_engine $!
}

wait_for_engine() { # pid
    local _
    for _ in $(seq 300); do # 30 s at most; 0.6 s is usual
        if is_up; then return 0; fi
        kill -0 "$1" 2>/dev/null || break
        sleep 0.1
    done
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
    return 1
}

start_with_any_driver() {
    # runc with the cgroupfs driver wants a whole cgroup v2 tree, or v1 hierarchies; of both it takes v1.
    [ -e /sys/fs/cgroup/cgroup.controllers ] || [ -e /sys/fs/cgroup/devices/cgroup.procs ] ||
        die "no cgroups that can be used below /sys/fs/cgroup"
    local driver
    for driver in $DRIVERS; do
        say "starting dockerd with storage driver $driver"
        if start_engine "$driver"; then return 0; fi
        say "it did not start with $driver; the end of $DIR/dockerd.log:"
        tail -n 5 "$DIR/dockerd.log" >&2 || true
    done
    die "dockerd did not start"
}

[ "$(id -u)" = 0 ] || die "only root can start a Docker engine; or set DOCKER_HOST to one that runs"
install_missing
if ! is_up; then
    # What a killed engine leaves (pid files, shims, mounts) keeps a new one from starting.
    bash "$HERE/docker-down.sh"
    start_with_any_driver
fi
make_images
say "$(docker_cli version --format 'engine {{.Server.Version}} (API {{.Server.APIVersion}})') at $SOCK"
echo "export DOCKER_HOST=unix://$SOCK"
