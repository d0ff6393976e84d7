# What slurm-up.sh and slurm-down.sh agree on. Sourced, not run.
#
# Settings (environment):
#   SLURM_TEST_DIR    state, logs, sockets, configuration       (default $TMPDIR/torchx-tui-slurm)
#   SLURM_TEST_PORT   the first of 20 ports, all on loopback    (default 26917)
#   SLURM_TEST_NODES  how many nodes: n1, n2, ...               (default 3)
#   SLURM_TEST_CPUS   how many CPUs each claims to have         (default 8)
#   SLURM_TEST_SETTINGS  lines for slurm.conf, which win over those that are there
DIR=${SLURM_TEST_DIR:-${TMPDIR:-/tmp}/torchx-tui-slurm}
PORT=${SLURM_TEST_PORT:-26917}
NODES=${SLURM_TEST_NODES:-3}
CPUS=${SLURM_TEST_CPUS:-8}
DBD_PORT=$((PORT + 1)) DB_PORT=$((PORT + 2)) NODE_PORT=$((PORT + 10))
CLUSTER=test
RUN=$DIR/run LOG=$DIR/log ETC=$DIR/etc
export SLURM_CONF=$ETC/slurm.conf

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }
die() { say "$*"; exit 1; }

is_program() { # pid, program: does it live, and is it that? Debian's have -wlm after their names; a zombie has none
    case "$(readlink "/proc/$1/exe" 2>/dev/null)" in */"$2" | */"$2"-wlm) return 0 ;; *) return 1 ;; esac
}

runs() { # program, pid file's name without .pid where it is another
    local pid
    pid=$(cat "$RUN/${2:-$1}.pid" 2>/dev/null) && [ -n "$pid" ] && is_program "$pid" "$1"
}

await() { # seconds, command...: ask until it holds
    local tries=$(($1 * 20))
    shift
    while ! "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.05
    done
}
