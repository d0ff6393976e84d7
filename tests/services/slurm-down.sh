#!/usr/bin/env bash
# Stop the cluster that slurm-up.sh started, and only that one.
#
#   tests/services/slurm-down.sh          cancel its jobs, stop its programs, keep its database and settings
#   tests/services/slurm-down.sh --purge  the same, and remove all its state
#
# Programs are found by pid files in the state folder, or by SLURM_CONF in their environment; never by name alone.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/services/slurm-common.sh
. "$HERE/slurm-common.sh"

no_jobs() { [ -z "$(timeout 5 squeue -h 2>/dev/null)" ]; }

cancel_jobs() { # while there are programs to end them: a slurmd that is stopped leaves its jobs running
    runs slurmctld || return 0
    local jobs
    jobs=$(timeout 10 squeue -h -o %A 2>/dev/null | sort -u || true)
    # shellcheck disable=SC2086
    [ -z "$jobs" ] || timeout 10 scancel --quiet $jobs || true
    await 10 no_jobs || true
}

stop() { # program, seconds until it is killed, pid file's name where it is another
    local file=$RUN/${3:-$1}.pid pid
    if runs "$1" "${3:-$1}"; then
        pid=$(cat "$file")
        kill -TERM "$pid" 2>/dev/null || true
        if ! await "$2" has_ended "$pid" "$1"; then
            say "$1 ($pid) did not end within $2 s: killing it"
            kill -KILL "$pid" 2>/dev/null || true
        fi
    fi
    rm -f "$file"
}

has_ended() { ! is_program "$1" "$2"; }

family() { # pid: it and all below it
    local child
    echo "$1"
    for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null || true); do family "$child"; done
}

kill_steps() { # what a killed slurmd leaves: the programs that watch over its jobs, and the jobs
    local exe pid
    for exe in /proc/[0-9]*/exe; do
        pid=${exe#/proc/}
        pid=${pid%/exe}
        is_program "$pid" slurmstepd || continue
        tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qxF "SLURM_CONF=$SLURM_CONF" || continue
        # shellcheck disable=SC2046
        kill -KILL $(family "$pid") 2>/dev/null || true
    done
}

cancel_jobs
for file in "$RUN"/slurmd-*.pid; do
    [ ! -e "$file" ] || stop slurmd 10 "$(basename "$file" .pid)"
done
stop slurmctld 15
stop slurmdbd 15
stop mariadbd 20
stop munged 5
kill_steps
rm -f "$RUN"/*.sock* "$RUN"/*.pid
if [ "${1:-}" = --purge ]; then rm -rf "$DIR"; fi
say "stopped"
