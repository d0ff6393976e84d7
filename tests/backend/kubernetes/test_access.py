"""Rights, tokens and certificates on a real API server."""

import base64
from pathlib import Path

import pytest
from backend.kubernetes.apps import role
from backend.kubernetes.kubeconfigs import write_kubeconfig
from support.volcano_jobs import make_job, start_job
from support.waiting import wait_until

from torchx_tui.backends.kube.api_server import ApiServer
from torchx_tui.backends.kubernetes.preflight import cancel_right, delete_right, server_findings
from torchx_tui.backends.kubernetes.scheduler import create_scheduler
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.specs.errors import BackendUnavailableError, SchedulerError
from torchx_tui.specs.roles import AppDef
from torchx_tui.specs.status import AppState

READ = ["get", "list", "watch"]
READ_JOBS = {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs", "jobs/status"], "verbs": READ}
READ_PODS = {"apiGroups": [""], "resources": ["pods", "events"], "verbs": READ}


@pytest.fixture
def user(kubernetes_cluster, tmp_path, monkeypatch):
    """Return what writes the kubeconfig of a user of the cluster, and lets KUBECONFIG name it."""
    settings = kubernetes_cluster.settings()

    def write(entries, **cluster):
        certificate = base64.b64encode(Path(settings.ssl_ca_cert).read_bytes()).decode()
        given = {"certificate-authority-data": certificate, **cluster}
        path = write_kubeconfig(
            tmp_path / "config", entries, settings.host, namespace=kubernetes_cluster.namespace,
            cluster={name: value for name, value in given.items() if value is not None},
        )  # fmt: skip
        monkeypatch.setenv("KUBECONFIG", str(path))

    return write


def token_of(cluster, account):
    path = f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts/{account}/token"
    ask = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    return cluster.request("POST", path, ask)["status"]["token"]


@pytest.fixture
def alice(kubernetes_cluster, user):
    """Return what makes a user with these rights, beside those that everybody has, and a scheduler for her."""
    made = []

    def make(*rules):
        cluster, kind = kubernetes_cluster, "rbac.authorization.k8s.io"
        rbac = f"/apis/{kind}/v1/namespaces/{cluster.namespace}"
        accounts = f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts"
        cluster.request("POST", accounts, {"metadata": {"name": "alice"}})
        cluster.request("POST", f"{rbac}/roles", {"metadata": {"name": "little"}, "rules": list(rules)})
        subject = {"kind": "ServiceAccount", "name": "alice", "namespace": cluster.namespace}
        reference = {"apiGroup": kind, "kind": "Role", "name": "little"}
        binding = {"metadata": {"name": "little"}, "subjects": [subject], "roleRef": reference}
        cluster.request("POST", f"{rbac}/rolebindings", binding)
        user({"token": token_of(cluster, "alice")})
        made.append(create_scheduler("torchx"))
        return made[-1]

    yield make
    for scheduler in made:
        scheduler.close()


def test_few_rights(kubernetes_cluster, alice):
    app_id = start_job(kubernetes_cluster, make_job("long", "sleep 600"))
    scheduler = alice(READ_JOBS)
    refused = f"not allowed: system:serviceaccount:{kubernetes_cluster.namespace}:alice may not"
    for act, right in (
        (scheduler.cancel, "update jobs.batch.volcano.sh/status"),
        (scheduler.delete, "delete jobs.batch.volcano.sh"),
    ):
        with pytest.raises(SchedulerError, match=f"{refused} {right}"):
            act(app_id)
    assert scheduler.describe(app_id).msg.startswith(f"{refused} list pods in namespace")
    server = ApiServer()
    missing = set()
    words = [one.what for one in server_findings(server, VOLCANO, kubernetes_cluster.namespace, missing) if one.hint]
    assert "you may not update jobs.batch.volcano.sh/status: nothing can be cancelled" in words
    assert "you may not delete jobs.batch.volcano.sh: nothing can be deleted" in words
    assert {cancel_right(VOLCANO), delete_right(VOLCANO)} <= missing
    server.close()


def test_no_rights(kubernetes_cluster, alice):
    app_id = start_job(kubernetes_cluster, make_job("long", "sleep 600"))
    scheduler = alice({"apiGroups": [""], "resources": ["events"], "verbs": ["list"]})
    app, cfg = AppDef("job", [role()]), {"queue": "default"}
    for verb, act in (
        ("list", scheduler.list),
        ("get", lambda: scheduler.describe(app_id)),
        ("create", lambda: scheduler.submit(app, {**cfg, "validate_spec": False})),
        ("create", lambda: scheduler.submit_dryrun(app, cfg)),
        ("get", lambda: scheduler.cancel(app_id)),
        ("get", lambda: scheduler.delete(app_id)),
        ("get", lambda: list(scheduler.log_iter(app_id, "worker"))),
        ("get", lambda: scheduler.shell_command(app_id, "worker", 0)),
    ):
        with pytest.raises(SchedulerError, match=kubernetes_cluster.namespace) as refused:
            act()
        # The launch form says it in other words.
        text = str(refused.value)
        assert f"{verb} jobs.batch.volcano.sh" in text or f"may not {verb} jobs" in text


def test_no_right_to_logs_and_shells(kubernetes_cluster, alice):
    app_id = start_job(kubernetes_cluster, make_job("long", "echo hi; sleep 600"))
    own = create_scheduler("torchx", namespace=kubernetes_cluster.namespace)
    wait_until(lambda: own.list()[0].state is AppState.RUNNING, "the job runs")
    own.close()
    scheduler = alice(READ_JOBS, READ_PODS)
    assert [row.app_id for row in scheduler.list()] == [app_id]
    assert scheduler.describe(app_id)
    with pytest.raises(SchedulerError, match=r"may not get pods/log"):
        list(scheduler.log_iter(app_id, "worker"))
    assert scheduler.capabilities.shell
    with pytest.raises(SchedulerError, match=r"may not get pods/exec"):
        scheduler.shell_command(app_id, "worker", 0)
    assert not scheduler.capabilities.shell
    scheduler.check()
    assert not scheduler.capabilities.shell


def test_renewed_token_is_read_again(kubernetes_cluster, user):
    user({"token": token_of(kubernetes_cluster, "default")})
    server = ApiServer()
    assert server.request("GET", "/version")["gitVersion"]
    # As if the old one had expired.
    server.configuration().api_key = {"authorization": "Bearer expired", "BearerToken": "Bearer expired"}
    assert server.request("GET", "/version")["gitVersion"]
    server.close()


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ({"proxy-url": "http://127.0.0.1:9", "server": "https://a.b:1"}, r"the proxy to .* does not work|refuses the"),
        ({"certificate-authority-data": None}, "shows a certificate that is not trusted"),
    ],
)
def test_unusable_connection(user, monkeypatch, cluster, words):
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    user({"token": "x"}, **cluster)
    with pytest.raises(BackendUnavailableError, match=words):
        ApiServer().request("GET", "/version")
