"""Who may ask an API server, and what is said of those who may not: rights, tokens, certificates, proxies."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import pytest
from support.volcano_jobs import make_job, start_job
from support.waiting import wait_until

from torchx_tui.backends.kubernetes.api_server import ApiError, ApiServer
from torchx_tui.backends.kubernetes.describe import described_now
from torchx_tui.backends.kubernetes.lifecycle import abort, remove
from torchx_tui.backends.kubernetes.preflight import CANCEL, DELETE, Rights, server_findings
from torchx_tui.backends.kubernetes.scheduler import create_scheduler
from torchx_tui.specs import AppDef, AppState, BackendUnavailableError, NotAllowedError, Resource, Role, SchedulerError


def make_user(cluster, folder, rules):
    """Return the kubeconfig of a service account that has these rights, beside those that everybody has."""
    space = f"/api/v1/namespaces/{cluster.namespace}"
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{cluster.namespace}"
    cluster.request("POST", f"{space}/serviceaccounts", {"metadata": {"name": "alice"}})
    cluster.request("POST", f"{rbac}/roles", {"metadata": {"name": "little"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "alice", "namespace": cluster.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "little"}
    binding = {"metadata": {"name": "little"}, "subjects": [subject], "roleRef": role}
    cluster.request("POST", f"{rbac}/rolebindings", binding)
    ask = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    token = cluster.request("POST", f"{space}/serviceaccounts/alice/token", ask)["status"]["token"]
    return str(write_kubeconfig(folder / "alice.kubeconfig", cluster, {"token": token}))


def write_kubeconfig(path, cluster, user, **server):
    """Write a kubeconfig for a cluster.

    Args:
        path: where.
        cluster: the cluster, and the namespace.
        user: how the user is known.
        server: more of the server's entry; None takes something out.
    """
    settings = cluster._settings()
    entry = {
        "server": settings.host,
        "certificate-authority-data": base64.b64encode(Path(settings.ssl_ca_cert).read_bytes()).decode(),
        **{name.replace("_", "-"): value for name, value in server.items()},
    }
    context = {"cluster": "c", "user": "u", "namespace": cluster.namespace}
    found = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "c", "cluster": {name: value for name, value in entry.items() if value is not None}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "test", "context": context}],
    }
    path.write_text(json.dumps(found))
    return path


JOBS = {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs", "jobs/status"]}


def test_a_user_with_few_rights(kubernetes_cluster, tmp_path, monkeypatch):
    app_id = start_job(kubernetes_cluster, make_job("long", "sleep 600"))
    rules = [{**JOBS, "verbs": ["get", "list", "watch"]}]
    monkeypatch.setenv("KUBECONFIG", make_user(kubernetes_cluster, tmp_path, rules))
    server = ApiServer()
    user = f"system:serviceaccount:{kubernetes_cluster.namespace}:alice"
    for act, verb, resource in ((abort, "update", "jobs/status"), (remove, "delete", "jobs")):
        with pytest.raises(ApiError) as refused:
            act(server, app_id, "")
        assert refused.value.status == 403
        assert f"not allowed: {user} may not {verb} {resource}.batch.volcano.sh" in str(refused.value)
    with pytest.raises(NotAllowedError, match=r"may not list pods in namespace"):
        described_now(server, app_id)
    rights = Rights(server, kubernetes_cluster.namespace)
    found = [finding for finding in server_findings(server, kubernetes_cluster.namespace, rights) if finding.hint]
    words = "\n".join(finding.what for finding in found)
    assert "you may not update jobs.batch.volcano.sh/status: nothing can be cancelled" in words
    assert "you may not delete jobs.batch.volcano.sh: nothing can be deleted" in words
    assert rights.known_missing(CANCEL)
    assert rights.known_missing(DELETE)
    server.close()


REFUSED = {
    "list": (lambda scheduler, app_id: scheduler.list(), "list", "jobs.batch.volcano.sh"),
    "describe": (lambda scheduler, app_id: scheduler.describe(app_id), "get", "jobs.batch.volcano.sh"),
    "launch": (
        lambda scheduler, app_id: scheduler.submit(shell_app(), {"queue": "default", "validate_spec": False}),
        "create",
        "jobs.batch.volcano.sh",
    ),
    "dry run": (
        lambda scheduler, app_id: scheduler.submit_dryrun(shell_app(), {"queue": "default"}),
        "create",
        "jobs.batch.volcano.sh",
    ),
    "cancel": (lambda scheduler, app_id: scheduler.cancel(app_id), "get", "jobs.batch.volcano.sh"),
    "delete": (lambda scheduler, app_id: scheduler.delete(app_id), "get", "jobs.batch.volcano.sh"),
    "logs": (lambda scheduler, app_id: list(scheduler.log_iter(app_id, "worker")), "get", "jobs.batch.volcano.sh"),
    "shell": (lambda scheduler, app_id: scheduler.shell_command(app_id, "worker", 0), "get", "jobs.batch.volcano.sh"),
}


def shell_app():
    role = Role("worker", "busybox:local", entrypoint="sh", resource=Resource(cpu=1, gpu=0, memMB=64))
    return AppDef("job", [role])


@pytest.mark.parametrize("what", REFUSED)
def test_a_user_with_no_rights(kubernetes_cluster, tmp_path, monkeypatch, what):
    app_id = start_job(kubernetes_cluster, make_job("long", "sleep 600"))
    rules = [{"apiGroups": [""], "resources": ["events"], "verbs": ["list"]}]
    monkeypatch.setenv("KUBECONFIG", make_user(kubernetes_cluster, tmp_path, rules))
    scheduler = create_scheduler("torchx")
    act, verb, resource = REFUSED[what]
    with pytest.raises(SchedulerError) as refused:
        act(scheduler, app_id)
    # At the form it is said in other words: what cannot be done, and where.
    assert f"{verb} {resource}" in str(refused.value) or f"may not {verb} jobs" in str(refused.value)
    assert kubernetes_cluster.namespace in str(refused.value)
    scheduler.close()


@pytest.mark.parametrize(
    ("verb", "resource", "act"),
    [
        ("get", "pods/log", lambda scheduler, app_id: list(scheduler.log_iter(app_id, "worker"))),
        ("get", "pods/exec", lambda scheduler, app_id: scheduler.shell_command(app_id, "worker", 0)),
    ],
)
def test_a_user_who_may_look_but_not_read(kubernetes_cluster, tmp_path, monkeypatch, verb, resource, act):
    app_id = start_job(kubernetes_cluster, make_job("long", "echo hi; sleep 600"))
    own = create_scheduler("torchx", namespace=kubernetes_cluster.namespace)
    wait_until(lambda: own.describe(app_id).state is AppState.RUNNING, "the job runs")  # type: ignore[union-attr]
    own.close()
    rules = [
        {**JOBS, "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["get", "list", "watch"]},
    ]
    monkeypatch.setenv("KUBECONFIG", make_user(kubernetes_cluster, tmp_path, rules))
    scheduler = create_scheduler("torchx")
    assert [row.app_id for row in scheduler.list()] == [app_id]
    assert scheduler.describe(app_id).state is AppState.RUNNING  # type: ignore[union-attr]
    with pytest.raises(SchedulerError, match=rf"may not {verb} {resource}"):
        act(scheduler, app_id)
    # What was refused is not offered any more; what was not tried is asked for.
    assert scheduler.capabilities.shell is (verb != "get" or resource != "pods/exec")
    scheduler.check()
    assert (scheduler.capabilities.cancel, scheduler.capabilities.delete) == (False, False)
    assert scheduler.capabilities.shell is False
    scheduler.close()


def make_token(cluster):
    """Return the token of an account of the namespace."""
    path = f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts/default/token"
    ask = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    return cluster.request("POST", path, ask)["status"]["token"]


def test_a_token_that_was_renewed_in_its_file(kubernetes_cluster, tmp_path, monkeypatch):
    """Whoever logs in again elsewhere need not start anew here."""
    path = write_kubeconfig(tmp_path / "config", kubernetes_cluster, {"token": make_token(kubernetes_cluster)})
    monkeypatch.setenv("KUBECONFIG", str(path))
    server = ApiServer()
    assert server.request("GET", "/version")["gitVersion"]
    # The old one has expired, as far as the server is concerned.
    server.configuration().api_key = {"authorization": "Bearer expired", "BearerToken": "Bearer expired"}
    assert server.request("GET", "/version")["gitVersion"]
    server.close()


# Prints a token as `aws eks get-token` and its like do; the first one that it gives is no good.
PLUGIN = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
count = len(list(folder.glob("asked-*")))
(folder / f"asked-{count}").touch()
token = (folder / "token").read_text() if count else "expired"
print(json.dumps({
    "apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential", "status": {"token": token},
}))
"""


def plugin_user(folder, cluster):
    (folder / "plugin.py").write_text(PLUGIN)
    (folder / "token").write_text(make_token(cluster))
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": sys.executable,
            "args": [str(folder / "plugin.py"), str(folder)],
            "interactiveMode": "Never",
        }
    }


def test_a_program_gives_the_token_and_is_asked_again(kubernetes_cluster, tmp_path, monkeypatch):
    user = plugin_user(tmp_path, kubernetes_cluster)
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "config", kubernetes_cluster, user)))
    server = ApiServer()
    assert server.request("GET", "/version")["gitVersion"]
    assert len(list(tmp_path.glob("asked-*"))) == 2
    assert server.request("GET", "/version")["gitVersion"]
    assert len(list(tmp_path.glob("asked-*"))) == 2
    server.close()


def test_a_proxy_that_is_not_there(kubernetes_cluster, tmp_path, monkeypatch):
    path = write_kubeconfig(
        tmp_path / "config", kubernetes_cluster, {"token": "x"}, proxy_url="http://127.0.0.1:9", server="https://a.b:1"
    )
    monkeypatch.setenv("KUBECONFIG", str(path))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(BackendUnavailableError, match=r"the proxy to .* does not work|refuses the connection"):
        ApiServer().request("GET", "/version")


def test_a_certificate_that_is_not_trusted(kubernetes_cluster, tmp_path, monkeypatch):
    path = write_kubeconfig(tmp_path / "config", kubernetes_cluster, {}, certificate_authority_data=None)
    monkeypatch.setenv("KUBECONFIG", str(path))
    with pytest.raises(BackendUnavailableError, match="shows a certificate that is not trusted"):
        ApiServer().request("GET", "/version")
