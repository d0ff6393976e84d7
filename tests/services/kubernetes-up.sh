#!/usr/bin/env bash
# Start a private Kubernetes on the loopback address, with what Volcano's users meet of Volcano. It reaches nothing outside.
#
#   tests/services/kubernetes-up.sh                API server and etcd: objects are kept, nothing runs
#   tests/services/kubernetes-up.sh --controllers  the controllers and the scheduler too, and the stand-in for Volcano
#   tests/services/kubernetes-up.sh --node         containerd and a kubelet too: pods run
#   eval "$(tests/services/kubernetes-up.sh ...)"  the same, and set KUBECONFIG: stdout has only `export` lines
#
# What is missing is built (kubernetes-build.sh) and installed (apt, as root). A second call starts what does not run.
# kubernetes-down.sh stops it. Settings: kubernetes-common.sh.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/services/kubernetes-common.sh
. "$HERE/kubernetes-common.sh"
# shellcheck source=tests/services/kubernetes-keys.sh
. "$HERE/kubernetes-keys.sh"
# shellcheck source=tests/services/kubernetes-images.sh
. "$HERE/kubernetes-images.sh"
# shellcheck source=tests/services/kubernetes-node.sh
. "$HERE/kubernetes-node.sh"

start() { # program, command...: start it unless it runs
    local program=$1
    shift
    if pid_of "$program" >/dev/null; then return 0; fi
    # Without proxies: everything that it asks is here.
    env -u HTTP_PROXY -u HTTPS_PROXY -u http_proxy -u https_proxy setsid "$@" >>"$LOG/$program.log" 2>&1 </dev/null &
    echo $! >"$RUN/$program.pid"
}

wait_for() { # seconds, program, command...: until the command succeeds
    local tries=$(($1 * 20)) program=$2 _
    shift 2
    for _ in $(seq "$tries"); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        kill -0 "$(cat "$RUN/$program.pid")" 2>/dev/null || break
        sleep 0.05
    done
    say "$program does not answer; the end of $LOG/$program.log:"
    tail -n 5 "$LOG/$program.log" >&2 || true
    exit 1
}

start_etcd() {
    # Nothing in it is worth a wait for the disk.
    start etcd "$CACHE/etcd" --data-dir "$DIR/etcd" --unsafe-no-fsync \
        --listen-client-urls "http://127.0.0.1:$ETCD_PORT" --advertise-client-urls "http://127.0.0.1:$ETCD_PORT" \
        --listen-peer-urls "http://127.0.0.1:$ETCD_PEER_PORT" \
        --initial-advertise-peer-urls "http://127.0.0.1:$ETCD_PEER_PORT" \
        --initial-cluster "default=http://127.0.0.1:$ETCD_PEER_PORT"
    wait_for 30 etcd curl -fsS "http://127.0.0.1:$ETCD_PORT/health"
}

start_api_server() { # [further options]
    # Priority and fairness is off: nobody is kept waiting here, and its bookkeeping is a fifth of the server's work.
    start kube-apiserver "$CACHE/kube-apiserver" --bind-address=127.0.0.1 --secure-port="$API_PORT" \
        --etcd-servers="http://127.0.0.1:$ETCD_PORT" --allow-privileged=true --endpoint-reconciler-type=none \
        --advertise-address=127.0.0.1 --external-hostname=localhost \
        --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" \
        --client-ca-file="$PKI/ca.crt" --authorization-mode=Node,RBAC --service-cluster-ip-range=10.96.0.0/16 \
        --service-account-issuer=https://kubernetes.default.svc \
        --service-account-key-file="$PKI/service-account.key" \
        --service-account-signing-key-file="$PKI/service-account.key" \
        --kubelet-client-certificate="$PKI/admin.crt" --kubelet-client-key="$PKI/admin.key" \
        --kubelet-certificate-authority="$PKI/ca.crt" --kubelet-preferred-address-types=Hostname \
        --enable-priority-and-fairness=false "$@"
    wait_for 90 kube-apiserver api /readyz
}

apply() { # path of an object, file: create it, or make it as the file says
    api "$1?fieldManager=tests&force=true" -X PATCH -H 'Content-Type: application/apply-patch+yaml' --data-binary "@$2"
}

install_volcano() { # its kinds of objects, and the queue that it makes
    if api /apis/scheduling.volcano.sh/v1beta1/queues/default >/dev/null 2>&1; then return 0; fi
    local work file name
    work=$(mktemp -d "${TMPDIR:-/tmp}/volcano.XXXXXX")
    awk -v folder="$work" 'BEGIN {n = 1} /^---$/ {n++; next} {print > (folder "/" n ".yaml")}' "$HERE/volcano-crds.yaml"
    for file in "$work"/*.yaml; do
        name=$(sed -n 's/^metadata: {name: \(.*\)}$/\1/p' "$file")
        apply "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/$name" "$file" >/dev/null
    done
    for name in batch.volcano.sh/v1alpha1/jobs scheduling.volcano.sh/v1beta1/{queues,podgroups}; do
        wait_for 30 kube-apiserver api "/apis/$name"
    done
    wait_for 30 kube-apiserver apply /apis/scheduling.volcano.sh/v1beta1/queues/default "$HERE/volcano-queue.yaml"
    rm -rf "$work"
}

has_default_account() { # and its token, without which no pod can be made
    api /api/v1/namespaces/default/serviceaccounts/default | tr -d ' \n' | grep -q '"secrets":\[{'
}

start_controllers() {
    start kube-controller-manager "$CACHE/kube-controller-manager" --kubeconfig="$PKI/manager.kubeconfig" \
        --bind-address=127.0.0.1 --secure-port="$MANAGER_PORT" --port=0 --leader-elect=false \
        --use-service-account-credentials=true --root-ca-file="$PKI/ca.crt" \
        --service-account-private-key-file="$PKI/service-account.key" \
        --node-monitor-grace-period=20s
    start kube-scheduler "$CACHE/kube-scheduler" --kubeconfig="$PKI/scheduler.kubeconfig" --bind-address=127.0.0.1 \
        --secure-port="$SCHEDULER_PORT" --port=0 --leader-elect=false
    # The stand-in of this checkout, as it is now, not of another that started the cluster.
    if ! cat "$HERE"/volcano_*.py | cmp -s - "$RUN/volcano_stand_in.source"; then
        stop_program volcano_stand_in
        cat "$HERE"/volcano_*.py >"$RUN/volcano_stand_in.source"
    fi
    start volcano_stand_in python3 "$HERE/volcano_stand_in.py" "$KUBECONFIG_FILE"
    wait_for 60 kube-controller-manager has_default_account
}

check_machine() {
    install_packages curl=curl openssl=openssl python3=python3
    [ "$1" != --node ] || check_node
    "$HERE/kubernetes-build.sh"
}

WHAT=${1:-}
case $WHAT in '' | --controllers | --node) ;; *) die "unknown: $WHAT" ;; esac
check_machine "$WHAT"
mkdir -p "$RUN" "$LOG"
make_keys
start_etcd
case $WHAT in
    # Nobody makes service accounts: pods need none.
    '') start_api_server --disable-admission-plugins=ServiceAccount ;;
    *) start_api_server ;;
esac
install_volcano
if [ -n "$WHAT" ]; then start_controllers; fi
if [ "$WHAT" = --node ]; then start_node; fi
say "Kubernetes $("$CACHE/kube-apiserver" --version | cut -d' ' -f2) at $API"
echo "export KUBECONFIG=$KUBECONFIG_FILE"
