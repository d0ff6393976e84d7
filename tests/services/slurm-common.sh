# What slurm-up.sh, slurm-down.sh and slurm-packages.sh agree on. Sourced, not run.
#
# Settings (environment):
#   SLURM_RELEASE     22.05, 24.11 or 26.05                     (default 22.05)
#   SLURM_TEST_CACHE  a folder for each unpacked release        (default /var/cache/torchx-tui-tests/slurm)
#   SLURM_TEST_DIR    state, logs, sockets, configuration       (default $TMPDIR/torchx-tui-slurm[-RELEASE])
#   SLURM_TEST_PORT   the first of 20 ports, all on loopback    (default by release)
#   SLURM_TEST_NODES  how many nodes: n1, n2, ...               (default 3)
#   SLURM_TEST_CPUS   how many CPUs each claims to have         (default 8)
#   SLURM_TEST_GPUS   GPUs of each node, such as gpu:a100:2     (default none)
#   SLURM_TEST_SETTINGS  lines for slurm.conf, which win over those that are there
say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }
die() { say "$*"; exit 1; }

# All that differs by release: Debian's suite, and the first port.
RELEASE=${SLURM_RELEASE:-22.05}
case $RELEASE in
22.05) SUITE="" PORT=26917 ;; # the packages of Debian 12, which are installed
24.11) SUITE=trixie PORT=26957 ;;
26.05) SUITE=sid PORT=26977 ;;
*) die "no such SLURM_RELEASE: $RELEASE; there are 22.05, 24.11 and 26.05" ;;
esac
PORT=${SLURM_TEST_PORT:-$PORT}
DIR=${SLURM_TEST_DIR:-${TMPDIR:-/tmp}/torchx-tui-slurm${SUITE:+-$RELEASE}}
# Not below a home folder: other users run the programs, too.
CACHE=${SLURM_TEST_CACHE:-/var/cache/torchx-tui-tests/slurm}/$RELEASE
# Of the installed release, the programs find each other by themselves.
PLUGINS="" STEPD=""
if [ -n "$SUITE" ]; then
    PLUGINS=PluginDir=$CACHE/plugins$'\n' STEPD=$CACHE/bin/slurmstepd
    export PATH=$CACHE/bin:$PATH
fi
NODES=${SLURM_TEST_NODES:-3}
CPUS=${SLURM_TEST_CPUS:-8}
GPUS=${SLURM_TEST_GPUS:-}
DBD_PORT=$((PORT + 1)) DB_PORT=$((PORT + 2)) NODE_PORT=$((PORT + 10))
CLUSTER=test
RUN=$DIR/run LOG=$DIR/log ETC=$DIR/etc
export SLURM_CONF=$ETC/slurm.conf

apt_get() { # one at a time, also with what else of the tests installs
    DEBIAN_FRONTEND=noninteractive flock "${TMPDIR:-/tmp}/torchx-tui-apt.lock" \
        apt-get -o DPkg::Lock::Timeout=300 -q "$@" >&2 </dev/null
}

install_packages() { # program=package...: the packages of the programs that are missing
    local need=() pair
    for pair in "$@"; do
        command -v "${pair%%=*}" >/dev/null || need+=("${pair#*=}")
    done
    [ ${#need[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || die "missing: ${need[*]}, and there is no apt-get to install them with"
    say "installing ${need[*]}"
    apt_get update
    apt_get install -y --no-install-recommends "${need[@]}"
}

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
