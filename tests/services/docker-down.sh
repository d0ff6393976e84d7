#!/usr/bin/env bash
# Stop the engine that docker-up.sh started, and only that one; also clear what is left of one that was killed.
#
#   tests/services/docker-down.sh           remove its containers and networks, stop it, keep its images
#   tests/services/docker-down.sh --purge   the same, and remove its state, images included
#   tests/services/docker-down.sh --stop    stop it, keep its containers: they end with it
#
# Processes are found by pid files in the state folder, or by that folder on their command line; never by name alone.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/services/docker-common.sh
. "$HERE/docker-common.sh"

is_ours() { # pid: does it live, and name our state folder?
    [ -r "/proc/$1/cmdline" ] && tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -qF -- "$DIR/"
}

wait_for_end() { # pid seconds
    local _
    for _ in $(seq $(($2 * 20))); do
        is_ours "$1" || return 0
        sleep 0.05
    done
    return 1
}

stop_process() { # pid file, seconds until it is killed
    [ -f "$1" ] || return 0
    local pid
    pid=$(cat "$1")
    is_ours "$pid" || return 0
    kill -TERM "$pid" 2>/dev/null || return 0
    wait_for_end "$pid" "$2" && return 0
    say "pid $pid did not end within $2 s: killing it"
    kill -KILL "$pid" 2>/dev/null || true
    wait_for_end "$pid" 5
}

remove_containers() {
    is_up || return 0
    local ids
    ids=$(docker_cli ps -aq)
    # By force: the first process of a container often ignores SIGTERM, and the engine would wait for each.
    # shellcheck disable=SC2086
    [ -z "$ids" ] || docker_cli rm -f -v $ids >/dev/null || true
    docker_cli network prune -f >/dev/null || true
}

kill_shims() { # what a killed engine leaves: containerd-shims and the containers below them
    local cmdline pid child children
    for cmdline in /proc/[0-9]*/cmdline; do
        pid=${cmdline#/proc/}
        pid=${pid%/cmdline}
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = containerd-shim ] || continue
        is_ours "$pid" || continue
        children=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null || true)
        kill -KILL "$pid" 2>/dev/null || true
        for child in $children; do kill -KILL "$child" 2>/dev/null || true; done
    done
}

unmount_all() { # below the state folder, the latest first; a path with a blank shows as \040
    local target
    awk -v d="$DIR/" 'index($5 "/", d) == 1 {print $5}' /proc/self/mountinfo | tac | while read -r target; do
        umount -l "$(printf '%b' "$target")" 2>/dev/null || true
    done
}

remove_cgroups() { # rmdir refuses one that is in use
    local parent
    for parent in "/sys/fs/cgroup$CGROUP" /sys/fs/cgroup/*"$CGROUP"; do
        [ ! -d "$parent" ] || find "$parent" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
}

remove_bridges() { # its own, the guard route, and bridges of networks that a killed engine left
    command -v ip >/dev/null || return 0
    local bridge
    ip link delete "$BRIDGE" 2>/dev/null || true
    ip route delete unreachable "$NET.0.0/16" 2>/dev/null || true
    for bridge in $(ip -o -4 address show | awk -v n="inet $NET." 'index($0, n) && $2 ~ /^br-/ {print $2}'); do
        ip link delete "$bridge" 2>/dev/null || true
    done
}

[ "${1:-}" = --stop ] || remove_containers
stop_process "$DIR/dockerd.pid" 20
stop_process "$DIR/exec/containerd/containerd.pid" 5
kill_shims
rm -f "$SOCK" "$DIR/dockerd.pid" "$DIR/exec/containerd/containerd.pid"
unmount_all
remove_cgroups
remove_bridges
if [ "${1:-}" = --purge ]; then rm -rf "$DIR"; fi
say "stopped"
