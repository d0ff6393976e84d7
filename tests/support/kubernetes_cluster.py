"""Kubernetes clusters for tests: one that all share, with a node, and API servers that a test has for itself."""

from __future__ import annotations

import base64
import json
import os
import signal
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import urllib3

from .services import HOW, NoServiceError, free_slot, run_script
from .waiting import PATIENCE, wait_until

# Read before any test changes the environment.
_GIVEN = os.environ.get("KUBERNETES_TEST_KUBECONFIG", "")
_SHARED_FOLDER = Path(os.environ.get("KUBERNETES_TEST_DIR") or Path(tempfile.gettempdir(), "torchx-tui-kubernetes"))
_USERS_CACHE = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
_CACHE = os.environ.get("KUBERNETES_TEST_CACHE") or str(Path(_USERS_CACHE, "torchx-tui-tests", "kubernetes"))
# Each API server of a test's own takes one, for its ports.
_SLOTS = range(8)


def _ports(slot: int) -> range:
    first = 28000 + 10 * slot
    return range(first, first + 10)


def _has_ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "Z" and len(os.listdir(f"/proc/{pid}/task")) == 1
    except (FileNotFoundError, ProcessLookupError):
        return True


Object = dict[str, Any]


class RefusedError(Exception):
    """A server says no."""

    def __init__(self, status: int, answer: str) -> None:
        super().__init__(f"{status} {answer[:500]}")
        self.status = status


class KubernetesCluster:
    """A cluster, and a namespace in it.

    Args:
        kubeconfig: the path of a kubeconfig.
        namespace: where the test works.
    """

    def __init__(self, kubeconfig: str, namespace: str = "default") -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self._configuration: Any = None
        self._pool: urllib3.PoolManager | None = None

    @property
    def context(self) -> str:
        """The name of the kubeconfig's current context."""
        import kubernetes.config

        return kubernetes.config.list_kube_config_contexts(self.kubeconfig)[1]["name"]

    @property
    def host(self) -> str:
        """The server's address."""
        return self.settings().host

    def request(
        self, method: str, path: str, body: Object | None = None, content_type: str = "application/json"
    ) -> Object:
        """Return the server's answer, asked without the code that is tested.

        Raises:
            RefusedError: the server says no.
        """
        settings = self.settings()
        if self._pool is None:
            self._pool = urllib3.PoolManager(
                ca_certs=settings.ssl_ca_cert, cert_file=settings.cert_file, key_file=settings.key_file, retries=False
            )
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        if token := settings.get_api_key_with_prefix("authorization"):
            headers["Authorization"] = token
        data = None if body is None else json.dumps(body).encode()
        response = self._pool.request(method, settings.host + path, body=data, headers=headers, timeout=PATIENCE)
        if response.status >= 300:
            raise RefusedError(response.status, response.data.decode("utf-8", "replace"))
        return json.loads(response.data)

    def make_namespace(self) -> None:
        """Make another namespace, and let it be this cluster's."""
        self.namespace = f"test-{uuid.uuid4().hex[:10]}"
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    def close(self) -> None:
        if self._pool is not None:
            self._pool.clear()

    def settings(self) -> Any:
        if self._configuration is None:
            import kubernetes.client
            import kubernetes.config

            made = kubernetes.client.Configuration()
            kubernetes.config.load_kube_config(self.kubeconfig, client_configuration=made)
            # Whole, for another thread may be asking as well.
            self._configuration = made
        return self._configuration


def shared_cluster() -> str:
    """Return the kubeconfig of the cluster that was given, else of the one that runs for tests; pods run in it.

    Raises:
        NoServiceError: none runs.
    """
    if not _GIVEN and not (_SHARED_FOLDER / "run" / "kubelet.pid").exists():
        raise NoServiceError(f"{HOW.format('a cluster')}, or set KUBERNETES_TEST_KUBECONFIG to one that runs pods")
    return _GIVEN or str(_SHARED_FOLDER / "pki" / "admin.kubeconfig")


@contextmanager
def new_namespace(kubeconfig: str) -> Iterator[KubernetesCluster]:
    """Give a cluster with a new namespace, in which pods can be made; jobs and pods are deleted afterwards."""
    _check_lives(Path(kubeconfig).parent.parent)
    cluster = KubernetesCluster(kubeconfig)
    cluster.make_namespace()
    try:
        _await_account(cluster)
        yield cluster
    finally:
        path = f"/api/v1/namespaces/{cluster.namespace}"
        jobs = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{cluster.namespace}/jobs"
        # Pods are given no time, for the sake of the tests that follow.
        for request in (jobs, f"{path}/pods?gracePeriodSeconds=1"):
            _delete(cluster, request)
        cluster.close()


def delete_namespace(kubeconfig: str, namespace: str) -> None:
    """Delete a namespace without waiting for it: at the end of a run, since it costs the server more than any test."""
    cluster = KubernetesCluster(kubeconfig, namespace)
    _delete(cluster, f"/api/v1/namespaces/{namespace}")
    cluster.close()


def _delete(cluster: KubernetesCluster, path: str) -> None:
    try:
        cluster.request("DELETE", path)
    except RefusedError as error:
        if error.status not in (404, 409):
            raise


class OwnCluster(KubernetesCluster):
    """An API server with its etcd that one test starts, stops and kills as it likes; a node only where it asks.

    Args:
        folder: where its state is kept.
        slot: which ports and addresses are its own.
    """

    def __init__(self, folder: Path, slot: int) -> None:
        super().__init__(str(folder / "pki" / "admin.kubeconfig"))
        self._folder = folder
        self._port = _ports(slot).start
        self._test_settings = {
            "KUBERNETES_TEST_DIR": str(folder),
            "KUBERNETES_TEST_PORT": str(self._port),
            "KUBERNETES_TEST_BRIDGE": f"txtuik8sown{slot}",
            "KUBERNETES_TEST_NET": f"10.{230 + slot}.0",
        }
        self._has_node = False

    def start(self, *, node: bool = False) -> None:
        """Start what does not run; its objects are as they were.

        Args:
            node: with Kubernetes' controllers and scheduler, what stands in for Volcano's, and a node, so that pods
                run. What was once asked for is always started.
        """
        self._has_node |= node
        _up(self._test_settings, *(["--node"] if self._has_node else []))

    def kill_api_server(self) -> None:
        """Kill the API server by SIGKILL."""
        self.kill("kube-apiserver")

    def kill(self, program: str) -> None:
        """Kill one of its programs by SIGKILL, such as ``kubelet``."""
        pid = int((self._folder / "run" / f"{program}.pid").read_text())
        os.kill(pid, signal.SIGKILL)
        # Its port is free when its last thread has ended.
        wait_until(lambda: _has_ended(pid), f"the end of {program}")

    def compact(self) -> int:
        """Drop etcd's history, as it is dropped every five minutes; return the revision that is left.

        Lists that are read on fail with 410 from now on. The API server remembers what it watches: so do watches once
        it was started again.
        """
        # What was read last is in the latest revision: there must be a later one.
        key = base64.b64encode(b"later").decode()
        revision = int(self._ask_etcd("kv/put", {"key": key, "value": key})["header"]["revision"])
        self._ask_etcd("kv/compaction", {"revision": revision, "physical": True})
        return revision

    def stop(self) -> None:
        """Stop it; its objects are kept."""
        _down(self._test_settings)

    def purge(self) -> None:
        """Stop it and remove everything of it."""
        self.close()
        _down(self._test_settings, "--purge")

    def _ask_etcd(self, path: str, body: Object) -> Object:
        address = f"http://127.0.0.1:{self._port + 1}/v3/{path}"
        with urllib.request.urlopen(address, json.dumps(body).encode(), timeout=PATIENCE) as answer:
            return json.load(answer)


@contextmanager
def private_cluster() -> Iterator[OwnCluster]:
    """Give an API server of one's own, started; it is removed afterwards.

    Raises:
        NoServiceError: none can be started.
    """
    _check_built()
    with free_slot(str(Path(tempfile.gettempdir(), "torchx-tui-kubernetes-own")), _SLOTS, _ports) as slot:
        cluster = OwnCluster(Path(tempfile.mkdtemp(prefix="txk-")), slot)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.purge()


def _check_built() -> None:
    # Minutes of building are not what a test may begin.
    try:
        run_script("kubernetes-build.sh", {"KUBERNETES_TEST_CACHE": _CACHE}, "--check")
    except NoServiceError:
        raise NoServiceError(
            f"Kubernetes is not built in {_CACHE}: tests/services/kubernetes-build.sh does it, in minutes; "
            "or set KUBERNETES_TEST_KUBECONFIG"
        ) from None


def _up(settings: Mapping[str, str], *arguments: str) -> None:
    run_script("kubernetes-up.sh", {"KUBERNETES_TEST_CACHE": _CACHE, **settings}, *arguments)


def _down(settings: Mapping[str, str], *arguments: str) -> None:
    run_script("kubernetes-down.sh", {"KUBERNETES_TEST_CACHE": _CACHE, **settings}, *arguments)


def _check_lives(folder: Path) -> None:
    """Fail at once where a program of a cluster of ours has ended, rather than wait in vain for each pod."""
    for noted in sorted((folder / "run").glob("*.pid")):
        log = folder / "log" / f"{noted.stem}.log"
        ended = not Path(f"/proc/{noted.read_text().strip()}").exists()
        assert not ended, f"{noted.stem} has ended; its last words: {log.read_text(errors='replace')[-1000:]}"


def _await_account(cluster: KubernetesCluster) -> None:
    """Wait for the account that pods run as, and where it has one, for its token."""
    path = f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts/default"
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            # Servers from 1.24 on make no such token.
            if cluster.request("GET", path).get("secrets") or not _makes_tokens(cluster):
                return
        except RefusedError as error:
            if error.status != 404:
                raise
        assert time.monotonic() < deadline, f"the namespace {cluster.namespace} got no service account"
        time.sleep(0.02)


def _makes_tokens(cluster: KubernetesCluster) -> bool:
    version = cluster.request("GET", "/version")
    return (int(version["major"]), int(version["minor"].rstrip("+"))) < (1, 24)


def in_namespace(kubeconfig: str, namespace: str, path: Path) -> str:
    """Return a kubeconfig of the same server whose context has this namespace."""
    found = json.loads(Path(kubeconfig).read_text())
    for one in found["contexts"]:
        one["context"]["namespace"] = namespace
    path.write_text(json.dumps(found))
    return str(path)
