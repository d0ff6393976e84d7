"""Why jobs are in their states, on real pods; what looking at a job costs; ending jobs."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.api_proxy import Answer, api_proxy
from support.volcano_jobs import delete_job, make_job, start_job, status_of
from support.waiting import wait_for

from torchx_tui.backends.kubernetes.api_server import ApiError, ApiServer
from torchx_tui.backends.kubernetes.check import CANCEL, DELETE, Rights, server_findings
from torchx_tui.backends.kubernetes.describe import described_now
from torchx_tui.backends.kubernetes.ending import abort, remove
from torchx_tui.backends.kubernetes.jobs import find_job
from torchx_tui.backends.kubernetes.listing import uid_of
from torchx_tui.backends.kubernetes.scheduler import create_scheduler
from torchx_tui.backends.responses import DescribeAppResponse
from torchx_tui.specs import (
    NONE,
    AppDef,
    AppState,
    BackendUnavailableError,
    NotAllowedError,
    Resource,
    Role,
    SchedulerError,
)


@pytest.fixture
def server(kubernetes_cluster) -> Iterator[ApiServer]:
    made = ApiServer()
    yield made
    made.close()


def described(server: ApiServer, app_id: str) -> DescribeAppResponse:
    found = described_now(server, app_id)
    assert found is not None
    return found[1]


def wait_described(server: ApiServer, app_id: str, condition: Any) -> DescribeAppResponse:
    def look() -> DescribeAppResponse | None:
        response = described(server, app_id)
        return response if condition(response) else None

    return wait_for(look, f"the state of {app_id}")


def ended(server: ApiServer, app_id: str, state: AppState) -> DescribeAppResponse:
    return wait_described(server, app_id, lambda response: response.state is state)


def says(server: ApiServer, app_id: str, words: str) -> DescribeAppResponse:
    return wait_described(server, app_id, lambda response: words in response.msg)


def test_a_job_that_succeeds(server, kubernetes_cluster):
    job = make_job("well", "echo hi", replicas=2)
    for task in job["spec"]["tasks"]:
        task["template"]["metadata"]["labels"]["torchx.pytorch.org/role-name"] = "Trainer_x"
    app_id = start_job(kubernetes_cluster, job)
    response = ended(server, app_id, AppState.SUCCEEDED)
    assert response.msg == NONE
    (role,) = response.roles_statuses
    # As it was given, not as Volcano's names have it.
    assert role.role == "Trainer_x"
    assert [(one.id, one.state, one.exit_code) for one in role.replicas] == [
        (0, AppState.SUCCEEDED, 0),
        (1, AppState.SUCCEEDED, 0),
    ]
    assert all(one.node and one.started_at and one.finished_at for one in role.replicas)
    assert response.finished_at is not None
    assert response.metadata["queue"] == "default"


def test_exit_codes_and_signals(server, kubernetes_cluster):
    app_id = start_job(kubernetes_cluster, make_job("badly", "exit 137"))
    response = ended(server, app_id, AppState.FAILED)
    one = response.roles_statuses[0].replicas[0]
    assert (one.exit_code, one.signal) == (137, "SIGKILL")
    assert response.msg == "exit 137 (SIGKILL): worker/0"


def test_a_command_that_is_not_there(server, kubernetes_cluster):
    app_id = start_job(kubernetes_cluster, make_job("nocommand", command=["nosuch"]))
    response = says(server, app_id, "cannot be run")
    assert response.msg == "cannot be run: no such command: nosuch: the image does not have it: worker/0"


def test_an_image_that_cannot_be_pulled(server, kubernetes_cluster):
    app_id = start_job(kubernetes_cluster, make_job("noimage", image="nosuch.invalid/x:1", replicas=2))
    response = says(server, app_id, "cannot be pulled")
    assert response.state is AppState.PENDING
    assert response.msg.startswith("image nosuch.invalid/x:1 cannot be pulled: ")
    assert "rpc error" not in response.msg
    # Between two tries the kubelet says no more than that it waits: the cause stays.
    wait_described(
        server, app_id, lambda response: "(ImagePullBackOff)" in response.msg and "Back-off" not in response.msg
    )
    abort(server, app_id, "")


def test_what_does_not_fit_has_the_schedulers_words(server, kubernetes_cluster):
    app_id = start_job(kubernetes_cluster, make_job("toobig", cpu="1000", replicas=2))
    response = says(server, app_id, "Insufficient cpu")
    assert response.msg.startswith("cannot be scheduled: 0/1 nodes are available: 1 Insufficient cpu")
    assert response.msg.endswith("worker/0 and 1 more")


def test_a_claim_that_is_missing(server, kubernetes_cluster):
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "nosuch"}}]
    app_id = start_job(kubernetes_cluster, make_job("noclaim", pod={"volumes": volumes}))
    assert 'persistentvolumeclaim "nosuch" not found' in says(server, app_id, "nosuch").msg


def test_a_mount_that_fails(server, kubernetes_cluster):
    volumes = [{"name": "settings", "configMap": {"name": "nosuch"}}]
    mounts = [{"name": "settings", "mountPath": "/settings"}]
    job = make_job("nomount", pod={"volumes": volumes}, container={"volumeMounts": mounts})
    app_id = start_job(kubernetes_cluster, job)
    assert says(server, app_id, "FailedMount").state is AppState.PENDING


def test_a_setting_that_is_missing(server, kubernetes_cluster):
    source = {"valueFrom": {"secretKeyRef": {"name": "nosuch", "key": "token"}}}
    app_id = start_job(kubernetes_cluster, make_job("nosecret", container={"env": [{"name": "A", **source}]}))
    assert 'its container cannot be set up: secret "nosuch" not found' in says(server, app_id, "set up").msg


def test_out_of_memory(server, kubernetes_cluster):
    # Under cgroup v1 hybrid without swap accounting the limit holds as well.
    script = "x=$(yes | head -c 200000000); echo done"
    limits = {"resources": {"limits": {"memory": "32Mi"}, "requests": {"memory": "16Mi", "cpu": "0"}}}
    app_id = start_job(kubernetes_cluster, make_job("oom", script, container=limits))
    response = ended(server, app_id, AppState.FAILED)
    assert response.msg == "out of memory: killed at its limit of 32Mi (exit 137): worker/0"


def test_a_queue_that_does_not_exist(server, kubernetes_cluster):
    app_id = start_job(kubernetes_cluster, make_job("noqueue", queue="nosuch"))
    response = says(server, app_id, "does not exist")
    assert response.state is AppState.SUBMITTED
    assert "the queue nosuch does not exist" in response.msg


def test_one_replica_fails_while_others_run(server, kubernetes_cluster):
    script = 'case "$HOSTNAME" in *-0-0) exit 4;; *) sleep 600;; esac'
    app_id = start_job(kubernetes_cluster, make_job("mixed", script, replicas=2, minAvailable=1))
    response = says(server, app_id, "1 of 2 run")
    assert response.state is AppState.RUNNING
    assert response.msg == "exit 4: worker/0; 1 of 2 run"
    remove(server, app_id, "")


def test_cancel_keeps_the_job_and_ends_its_pods(server, kubernetes_cluster):
    app_id = start_job(kubernetes_cluster, make_job("long", "sleep 600", replicas=2))
    ended(server, app_id, AppState.RUNNING)
    abort(server, app_id, "")
    response = ended(server, app_id, AppState.CANCELLED)
    assert all(one.state is AppState.CANCELLED for one in response.roles_statuses[0].replicas)
    # A second time, and of what is not there, is nothing.
    abort(server, app_id, "")
    abort(server, f"{kubernetes_cluster.namespace}:nosuch", "")
    assert status_of(kubernetes_cluster, "long")["state"]["phase"] == "Aborted"


def test_delete_removes_the_job_and_its_pods(server, kubernetes_cluster):
    app_id = start_job(kubernetes_cluster, make_job("long", "sleep 600"))
    ended(server, app_id, AppState.RUNNING)
    remove(server, app_id, "")
    wait_for(lambda: find_job(server, app_id) is None, "the job's end")
    assert described_now(server, app_id) is None
    remove(server, app_id, "")


@pytest.mark.parametrize("act", [abort, remove])
def test_a_job_of_the_same_name_is_not_hit(server, kubernetes_cluster, act):
    app_id = start_job(kubernetes_cluster, make_job("same", "sleep 600"))
    job = find_job(server, app_id)
    assert job is not None
    delete_job(kubernetes_cluster, "same")
    wait_for(lambda: find_job(server, app_id) is None, "the end of the first")
    start_job(kubernetes_cluster, make_job("same", "sleep 600"))
    with pytest.raises(SchedulerError, match="is another job by now"):
        act(server, app_id, uid_of(job))
    assert find_job(server, app_id) is not None
    assert described(server, app_id).state is not AppState.CANCELLED


def test_three_requests_whatever_the_number_of_replicas(own_cluster, tmp_path, monkeypatch):
    own_cluster.start(controllers=True)
    with api_proxy(own_cluster, tmp_path) as proxy:
        monkeypatch.setenv("KUBECONFIG", str(proxy.kubeconfig))
        server = ApiServer()
        app_id = start_job(own_cluster, make_job("many", "true", replicas=64))
        says(server, app_id, "cannot be scheduled: no nodes available")
        proxy.forget()
        response = described(server, app_id)
        assert len(response.roles_statuses[0].replicas) == 64
        assert len(proxy.asked) <= 3
        server.close()


def test_a_conflict_is_tried_again(own_cluster, tmp_path, monkeypatch):
    start_job(own_cluster, make_job("busy"))
    left = [2]

    def fault(asked):
        if asked.method == "PUT" and left[0]:
            left[0] -= 1
            return Answer.status_object(409, "Conflict", "the object has been modified")
        return None

    with api_proxy(own_cluster, tmp_path) as proxy:
        monkeypatch.setenv("KUBECONFIG", str(proxy.kubeconfig))
        server = ApiServer()
        proxy.fault = fault
        abort(server, "default:busy", "")
        assert status_of(own_cluster, "busy")["state"]["phase"] == "Aborted"
        assert len(proxy.requests(lambda asked: asked.method == "PUT")) == 3
        server.close()


# What a user who may do little may do, and the words of what is refused.


def make_user(cluster: Any, folder: Any, rules: list[dict[str, Any]]) -> str:
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
    settings = cluster._settings()
    authority = base64.b64encode(Path(settings.ssl_ca_cert).read_bytes()).decode()
    path = folder / "alice.kubeconfig"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "test",
                "clusters": [
                    {"name": "c", "cluster": {"server": settings.host, "certificate-authority-data": authority}}
                ],
                "users": [{"name": "alice", "user": {"token": token}}],
                "contexts": [{"name": "test", "context": {"cluster": "c", "user": "alice",
                                                          "namespace": cluster.namespace}}],
            }
        )
    )  # fmt: skip
    return str(path)


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


def shell_app() -> AppDef:
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
    wait_for(lambda: own.describe(app_id).state is AppState.RUNNING, "the job runs")  # type: ignore[union-attr]
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
    scheduler.check()
    assert (scheduler.capabilities.cancel, scheduler.capabilities.delete) == (False, False)
    assert scheduler.capabilities.shell is False
    scheduler.close()


def test_a_token_that_is_not_known(kubernetes_cluster, tmp_path, monkeypatch):
    path = make_user(kubernetes_cluster, tmp_path, [{**JOBS, "verbs": ["list"]}])
    text = Path(path).read_text()
    begin = text.index('"token": "') + len('"token": "')
    Path(path).write_text(text[:begin] + "expired" + text[begin + 20 :])
    monkeypatch.setenv("KUBECONFIG", path)
    with pytest.raises(BackendUnavailableError, match=r"does not know who you are: .* log in again"):
        ApiServer().request("GET", "/api/v1/namespaces")


def test_a_certificate_that_is_not_trusted(kubernetes_cluster, tmp_path, monkeypatch):
    path = tmp_path / "untrusted.kubeconfig"
    cluster = {"server": kubernetes_cluster.host}
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )
    monkeypatch.setenv("KUBECONFIG", str(path))
    with pytest.raises(BackendUnavailableError, match="shows a certificate that is not trusted"):
        ApiServer().request("GET", "/version")
