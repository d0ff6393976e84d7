# A certificate authority of the cluster's own, the keys that it signed, and kubeconfigs with them. Sourced, not run.

make_authority() {
    [ ! -s "$PKI/ca.crt" ] || return 0
    openssl genrsa -out "$PKI/service-account.key" 2048 2>/dev/null
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$PKI/ca.key" -out "$PKI/ca.crt" \
        -days 365 -subj /CN=kubernetes-test-ca -addext keyUsage=critical,keyCertSign,cRLSign 2>/dev/null
}

make_key() { # file name, user, group
    [ ! -s "$PKI/$1.crt" ] || return 0
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$PKI/$1.key" -subj "/O=$3/CN=$2" \
        -out "$PKI/$1.csr" 2>/dev/null
    openssl x509 -req -in "$PKI/$1.csr" -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -CAcreateserial -days 365 \
        -out "$PKI/$1.crt" -extfile <(
            echo 'subjectAltName=DNS:localhost,IP:127.0.0.1'
            echo 'authorityKeyIdentifier=keyid' # Python 3.13 and newer refuse certificates without it.
            echo 'extendedKeyUsage=serverAuth,clientAuth'
        ) 2>/dev/null
}

write_kubeconfig() { # name of a key
    cat >"$PKI/$1.kubeconfig" <<JSON
{"apiVersion": "v1", "kind": "Config", "current-context": "test",
 "clusters": [{"name": "test", "cluster": {"server": "$API", "certificate-authority": "$PKI/ca.crt"}}],
 "users": [{"name": "$1", "user": {"client-certificate": "$PKI/$1.crt", "client-key": "$PKI/$1.key"}}],
 "contexts": [{"name": "test", "context": {"cluster": "test", "user": "$1", "namespace": "default"}}]}
JSON
}

make_keys() {
    mkdir -p "$PKI"
    make_authority
    make_key apiserver kube-apiserver kubernetes
    make_key admin admin system:masters
    make_key manager system:kube-controller-manager system:kube-controller-manager
    make_key scheduler system:kube-scheduler system:kube-scheduler
    make_key kubelet "system:node:$NODE" system:nodes
    local name
    for name in admin manager scheduler kubelet; do write_kubeconfig "$name"; done
}
