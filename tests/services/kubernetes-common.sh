# What the kubernetes-*.sh agree on. Sourced, not run.
#
# Settings (environment):
#   KUBERNETES_TEST_DIR     state: keys, etcd's data, pid files, logs       (default $TMPDIR/torchx-tui-kubernetes)
#   KUBERNETES_TEST_CACHE   what was built                                  (default ~/.cache/torchx-tui-tests/kubernetes)
#   KUBERNETES_TEST_PORT    the first of ten ports on the loopback address  (default 27443)
#   KUBERNETES_TEST_BRIDGE  the name of the pods' bridge                    (default txtuik8s0)
#   KUBERNETES_TEST_NET     the first three numbers of their addresses      (default 10.246.0)
#   KUBERNETES_TEST_PYTHON  the interpreter that goes into python:local     (default /usr/bin/python3)
# Clusters with settings of their own run side by side.
# Go collects garbage each time that a small heap doubles, which is a fifth of the API server's time.
export GOGC=${GOGC:-400}
DIR=${KUBERNETES_TEST_DIR:-${TMPDIR:-/tmp}/torchx-tui-kubernetes}
CACHE=${KUBERNETES_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/torchx-tui-tests/kubernetes}
BRIDGE=${KUBERNETES_TEST_BRIDGE:-txtuik8s0}
NET=${KUBERNETES_TEST_NET:-10.246.0}
PYTHON=${KUBERNETES_TEST_PYTHON:-/usr/bin/python3}

API_PORT=${KUBERNETES_TEST_PORT:-27443}
ETCD_PORT=$((API_PORT + 1))
ETCD_PEER_PORT=$((API_PORT + 2))
MANAGER_PORT=$((API_PORT + 3))
SCHEDULER_PORT=$((API_PORT + 4))
KUBELET_PORT=$((API_PORT + 5))
KUBELET_HEALTH_PORT=$((API_PORT + 6))

RUN=$DIR/run
PKI=$DIR/pki
LOG=$DIR/log
API=https://127.0.0.1:$API_PORT
KUBECONFIG_FILE=$PKI/admin.kubeconfig
# The one node's name must lead to the loopback address, where its kubelet listens.
NODE=localhost
# The node's pods have cgroups below a parent of its own, so that stopping it clears only that.
CGROUP=torchx-tui-kubernetes-$BRIDGE
CONTAINERD_SOCK=$DIR/containerd/containerd.sock
# In the order in which they are stopped.
PROGRAMS="volcano_stand_in kubelet containerd kube-scheduler kube-controller-manager kube-apiserver etcd"

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }
die() { say "$*"; exit 1; }

api() { # path [curl's options]: ask the API server as its administrator
    local path=$1
    shift
    curl -fsS --max-time 10 --cacert "$PKI/ca.crt" --cert "$PKI/admin.crt" --key "$PKI/admin.key" "$@" "$API$path"
}

ctr_cli() { ctr --address "$CONTAINERD_SOCK" --namespace k8s.io "$@"; }

pid_of() { # program: its pid, if that is still a process of this cluster
    local pid
    pid=$(cat "$RUN/$1.pid" 2>/dev/null) && [ -n "$pid" ] || return 1
    is_ours "$pid" && echo "$pid"
}

is_ours() { # pid: does it live, and name our state folder?
    [ -r "/proc/$1/cmdline" ] && tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -qF -- "$DIR/"
}

wait_for_end() { # pid, seconds
    local _
    for _ in $(seq $(($2 * 20))); do
        is_ours "$1" || return 0
        sleep 0.05
    done
    return 1
}

stop_program() { # program
    local pid
    if pid=$(pid_of "$1"); then
        kill -TERM "$pid" 2>/dev/null || true
        if ! wait_for_end "$pid" 10; then
            say "$1 (pid $pid) did not end within 10 s: killing it"
            kill -KILL "$pid" 2>/dev/null || true
            wait_for_end "$pid" 5 || true
        fi
    fi
    rm -f "$RUN/$1.pid"
}

install_packages() { # those of the arguments PROGRAM=PACKAGE (or FILE=PACKAGE) that are missing
    local pair need=()
    for pair in "$@"; do
        command -v "${pair%=*}" >/dev/null || [ -e "${pair%=*}" ] || need+=("${pair#*=}")
    done
    [ ${#need[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || die "missing: ${need[*]}, and there is no apt-get to install them with"
    say "installing ${need[*]}"
    export DEBIAN_FRONTEND=noninteractive
    flock "${TMPDIR:-/tmp}/torchx-tui-apt.lock" apt-get -o DPkg::Lock::Timeout=300 -q update >&2 </dev/null
    flock "${TMPDIR:-/tmp}/torchx-tui-apt.lock" apt-get -o DPkg::Lock::Timeout=300 -q install -y --no-install-recommends "${need[@]}" >&2 </dev/null
}
