# The node: containerd and a kubelet, which run pods on this machine. Sourced, not run.

SYSCTLS="vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops"

check_node() {
    [ "$(id -u)" = 0 ] || die "only root can start a node"
    install_packages containerd=containerd runc=runc ip=iproute2 unshare=util-linux /bin/busybox=busybox-static "$PYTHON=python3" \
        /usr/lib/cni/bridge=containernetworking-plugins
}

make_pod_bridge() {
    # Pods reach one another and this machine, by addresses that lead nowhere else.
    if [ ! -d "/sys/class/net/$BRIDGE" ]; then
        ip link add name "$BRIDGE" type bridge
        ip address add "$NET.1/24" dev "$BRIDGE"
    fi
    ip link set "$BRIDGE" up
}

can_overlay() { # does the state folder's file system bear one?
    local work result=0
    work=$(mktemp -d "$DIR/overlay.XXXXXX")
    mkdir "$work"/{lower,upper,work,merged}
    mount -t overlay overlay "$work/merged" \
        -o "lowerdir=$work/lower,upperdir=$work/upper,workdir=$work/work" 2>/dev/null || result=1
    umount "$work/merged" 2>/dev/null || true
    rm -rf "$work"
    return "$result"
}

write_containerd_config() {
    local snapshotter=native
    if can_overlay; then snapshotter=overlayfs; fi
    # Without CAP_SYS_RESOURCE, as in many containers, no pod can lower its score: restrict_oom_score_adj.
    cat >"$DIR/containerd/config.toml" <<TOML
version = 2
root = "$DIR/containerd/root"
state = "$DIR/containerd/state"
[grpc]
  address = "$CONTAINERD_SOCK"
[plugins."io.containerd.internal.v1.opt"]
  path = "$DIR/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:local"
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$snapshotter"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$DIR/cni"
TOML
    cat >"$DIR/cni/bridge.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "$BRIDGE", "plugins": [{"type": "bridge", "bridge": "$BRIDGE", "isGateway": false,
 "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "$DIR/addresses", "ranges": [[{"subnet": "$NET.0/24"}]]}}]}
JSON
}

write_kubelet_config() {
    cat >"$DIR/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: $KUBELET_PORT
readOnlyPort: 0
healthzBindAddress: 127.0.0.1
healthzPort: $KUBELET_HEALTH_PORT
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: AlwaysAllow}
tlsCertFile: $PKI/kubelet.crt
tlsPrivateKeyFile: $PKI/kubelet.key
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP
failSwapOn: false
makeIPTablesUtilChains: false
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 200Mi, nodefs.available: 1Gi}
nodeStatusUpdateFrequency: 5s
containerLogMaxSize: 8Mi
containerLogMaxFiles: 2
volumeStatsAggPeriod: 0s
maxPods: 200
serializeImagePulls: false
registryPullQPS: 0
eventRecordQPS: 0
kubeAPIQPS: 100
kubeAPIBurst: 200
YAML
}

make_cgroups() {
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        mkdir -p "/sys/fs/cgroup/$CGROUP"
        return
    fi
    local hierarchy file
    for hierarchy in /sys/fs/cgroup/*/; do
        [ "$hierarchy" != /sys/fs/cgroup/unified/ ] || continue
        mkdir -p "$hierarchy$CGROUP"
        # A new group has no cores and no memory until it is given them.
        for file in cpuset.cpus cpuset.mems; do
            [ ! -f "$hierarchy$file" ] || cat "$hierarchy$file" >"$hierarchy$CGROUP/$file"
        done
    done
}

is_node_ready() {
    api "/api/v1/nodes/$NODE" | tr -d ' \n' | grep -q '"type":"Ready","status":"True"'
}

start_kubelet() {
    local name
    # As it starts, it sets these for the whole machine.
    for name in $SYSCTLS; do echo "$name $(cat "/proc/sys/$name")"; done >"$RUN/sysctls"
    start kubelet nsenter --mount="/proc/$(pid_of containerd)/ns/mnt" "$CACHE/kubelet" \
        --kubeconfig="$PKI/kubelet.kubeconfig" --config="$DIR/kubelet.yaml" \
        --root-dir="$DIR/kubelet" --cert-dir="$DIR/kubelet/pki" --hostname-override="$NODE" --node-ip="$NET.1" \
        --container-runtime=remote --container-runtime-endpoint="unix://$CONTAINERD_SOCK"
    wait_for 60 kubelet curl -fsS "http://127.0.0.1:$KUBELET_HEALTH_PORT/healthz"
    wait_for 60 kubelet is_node_ready
    while read -r name value; do echo "$value" >"/proc/sys/$name"; done <"$RUN/sysctls"
}

start_containerd() {
    # In mounts of its own, which its kubelet joins: a kubelet removes the logs of pods that it does not know from
    # /var/log/pods, which is the same for all.
    mkdir -p /var/log/pods /var/log/containers /var/run/netns "$DIR"/{pod-logs,container-logs,netns}
    # Proxies at a closed port: pulling an image that is missing fails at once.
    # shellcheck disable=SC2016 # it is the inner shell that has the arguments
    start containerd env HTTP_PROXY=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 NO_PROXY=localhost,127.0.0.0/8 \
        unshare --mount sh -c 'mount --bind "$0/pod-logs" /var/log/pods &&
            mount --bind "$0/container-logs" /var/log/containers && mount --bind "$0/netns" /var/run/netns &&
            exec containerd --config "$0/containerd/config.toml"' "$DIR/"
    wait_for 30 containerd ctr_cli version
}

start_node() {
    mkdir -p "$DIR/containerd" "$DIR/cni" "$DIR/kubelet"
    make_pod_bridge
    write_containerd_config
    start_containerd
    make_images
    if pid_of kubelet >/dev/null && is_node_ready; then return 0; fi
    write_kubelet_config
    make_cgroups
    start_kubelet
}
