#!/usr/bin/env bash
# Stop what kubernetes-up.sh started, and only that; also clear what is left of one that was killed.
#
#   tests/services/kubernetes-down.sh           end its pods, stop it, keep its objects and images
#   tests/services/kubernetes-down.sh --purge   the same, and remove its state; what was built is kept
#
# Processes are found by pid files in the state folder, or by that folder on their command line; never by name alone.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/services/kubernetes-common.sh
. "$HERE/kubernetes-common.sh"

kill_shims() { # and the containers below them
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

remove_containers() { # so that a containerd that is started again does not look for them
    pid_of containerd >/dev/null || return 0
    local id
    for id in $(ctr_cli containers list --quiet 2>/dev/null); do
        ctr_cli tasks delete --force "$id" >/dev/null 2>&1 || true
        ctr_cli containers delete "$id" >/dev/null 2>&1 || true
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
    for parent in "/sys/fs/cgroup/$CGROUP" /sys/fs/cgroup/*/"$CGROUP"; do
        [ ! -d "$parent" ] || find "$parent" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
}

remove_network() { # those of the pods went with the mounts of their node
    command -v ip >/dev/null || return 0
    ip link delete "$BRIDGE" 2>/dev/null || true
    rm -rf "$DIR/addresses"
}

stop_program volcano_stand_in
stop_program kubelet
remove_containers
for program in $PROGRAMS; do stop_program "$program"; done
# Without a node of its own, there is nothing of a node to clear.
if [ -d "$DIR/cni" ]; then
    kill_shims
    unmount_all
    remove_cgroups
    remove_network
fi
if [ "${1:-}" = --purge ]; then rm -rf "$DIR"; fi
say "stopped"
