#!/usr/bin/env bash
# Start the services that tests use, side by side, or stop them: all, or those that are named.
#
#   tests/services/services.sh up [docker] [kubernetes] [slurm]    install what is missing (apt, as root), start, and stay
#   tests/services/services.sh down [docker] [kubernetes] [slurm]  stop, and remove all state; what was built is kept
#
# A service that runs is left as it is. One that cannot be started is named, with the end of its log; the others start.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

up() { # service
    case $1 in
    docker) "$HERE/docker-up.sh" ;;
    kubernetes) "$HERE/kubernetes-up.sh" --node ;;
    slurm) "$HERE/slurm-up.sh" ;;
    esac
}

down() { "$HERE/$1-down.sh" --purge; }

WHAT=${1:-}
shift || true
case $WHAT in up | down) ;; *) echo "usage: services.sh up|down [docker] [kubernetes] [slurm]" >&2 && exit 2 ;; esac
[ $# -gt 0 ] || set -- docker kubernetes slurm
for service in "$@"; do
    case $service in docker | kubernetes | slurm) ;; *) echo "no such service: $service" >&2 && exit 2 ;; esac
done

LOGS=$(mktemp -d)
trap 'rm -rf "$LOGS"' EXIT
declare -A PIDS
for service in "$@"; do
    "$WHAT" "$service" >"$LOGS/$service" 2>&1 </dev/null &
    PIDS[$service]=$!
done
FAILED=0
for service in "$@"; do
    if wait "${PIDS[$service]}"; then
        echo "$service: $WHAT"
    else
        echo "$service: not $WHAT" >&2
        tail -n 20 "$LOGS/$service" >&2
        FAILED=1
    fi
done
exit "$FAILED"
