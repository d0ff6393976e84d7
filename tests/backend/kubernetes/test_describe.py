"""Why jobs are in their states, on real pods; what looking at a job costs; ending jobs."""

from __future__ import annotations

import pytest
from backend.kubernetes.tables import table
from support.api_proxy import Answer, api_proxy
from support.volcano_jobs import delete_job, make_job, start_job, status_of
from support.waiting import wait_until

from torchx_tui.backends.kubernetes.api_server import ApiServer
from torchx_tui.backends.kubernetes.describe import described_now
from torchx_tui.backends.kubernetes.jobs import find_job
from torchx_tui.backends.kubernetes.lifecycle import abort, remove
from torchx_tui.backends.kubernetes.listing import uid_of
from torchx_tui.specs import NONE, AppState, SchedulerError


@pytest.fixture
def server(kubernetes_cluster):
    made = ApiServer()
    yield made
    made.close()


def described(server, app_id):
    found = described_now(server, app_id)
    assert found is not None
    return found[1]


def wait_described(server, app_id, condition):
    def look():
        response = described(server, app_id)
        return response if condition(response) else None

    return wait_until(look, f"the state of {app_id}")


def ended(server, app_id, state):
    return wait_described(server, app_id, lambda response: response.state is state)


def says(server, app_id, words):
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


@table("clusterjobs.yaml", "jobs", "options state words")
def test_job_that_waits_or_failed(server, kubernetes_cluster, request, options, state, words):
    app_id = start_job(kubernetes_cluster, make_job(request.node.callspec.id, **options))
    wait_described(server, app_id, lambda response: response.state.name == state and words in response.msg)
    remove(server, app_id, "")


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


def test_more_than_its_queue_may_use(server, kubernetes_cluster):
    name = f"small-{kubernetes_cluster.namespace}"
    queues = "/apis/scheduling.volcano.sh/v1beta1/queues"
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}
    kubernetes_cluster.request("POST", queues, {**queue, "spec": {"weight": 1, "capability": {"cpu": "500m"}}})
    try:
        app_id = start_job(kubernetes_cluster, make_job("over", cpu="300m", replicas=2, queue=name))
        says(server, app_id, "Unschedulable: queue resource quota insufficient: insufficient cpu")
    finally:
        kubernetes_cluster.request("DELETE", f"{queues}/{name}")


def test_pods_that_the_server_refuses(server, kubernetes_cluster):
    account = {"serviceAccountName": "missing"}
    app_id = start_job(kubernetes_cluster, make_job("noaccount", pod=account))
    words = "pods cannot be created: error looking up service account"
    assert 'serviceaccount "missing" not found' in says(server, app_id, words).msg
    space = f"/api/v1/namespaces/{kubernetes_cluster.namespace}"
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    kubernetes_cluster.request("POST", f"{space}/resourcequotas", quota)
    wait_until(
        lambda: kubernetes_cluster.request("GET", f"{space}/resourcequotas/q").get("status", {}).get("used"), "usage"
    )
    app_id = start_job(kubernetes_cluster, make_job("quota", "sleep 600", replicas=2))
    says(server, app_id, "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1")
    # The one that was refused before is given up in the end.
    response = ended(server, f"{kubernetes_cluster.namespace}:noaccount", AppState.FAILED)
    assert response.msg.endswith('serviceaccount "missing" not found; Volcano has given it up')


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
    wait_until(lambda: find_job(server, app_id) is None, "the job's end")
    assert described_now(server, app_id) is None
    remove(server, app_id, "")


@pytest.mark.parametrize("act", [abort, remove])
def test_a_job_of_the_same_name_is_not_hit(server, kubernetes_cluster, act):
    app_id = start_job(kubernetes_cluster, make_job("same", "sleep 600"))
    job = find_job(server, app_id)
    assert job is not None
    delete_job(kubernetes_cluster, "same")
    wait_until(lambda: find_job(server, app_id) is None, "the end of the first")
    start_job(kubernetes_cluster, make_job("same", "sleep 600"))
    with pytest.raises(SchedulerError, match="is another job now"):
        act(server, app_id, uid_of(job))
    assert find_job(server, app_id) is not None
    assert described(server, app_id).state is not AppState.CANCELLED


def test_three_requests_whatever_the_number_of_replicas(kubernetes_cluster, tmp_path, monkeypatch):
    with api_proxy(kubernetes_cluster, tmp_path) as proxy:
        monkeypatch.setenv("KUBECONFIG", str(proxy.kubeconfig))
        server = ApiServer()
        nowhere = {"nodeSelector": {"example.com/no-such": "x"}}
        app_id = start_job(kubernetes_cluster, make_job("many", "true", replicas=64, pod=nowhere))
        says(server, app_id, "0/1 nodes are available")
        proxy.forget()
        response = described(server, app_id)
        assert len(response.roles_statuses[0].replicas) == 64
        assert len(proxy.asked) <= 3
        server.close()


def test_a_conflict_is_tried_again(kubernetes_cluster, tmp_path, monkeypatch):
    start_job(kubernetes_cluster, make_job("busy", queue="nosuch"))
    left = [2]

    def fault(asked):
        if asked.method == "PUT" and left[0]:
            left[0] -= 1
            return Answer.status_object(409, "Conflict", "the object has been modified")
        return None

    with api_proxy(kubernetes_cluster, tmp_path) as proxy:
        monkeypatch.setenv("KUBECONFIG", str(proxy.kubeconfig))
        server = ApiServer()
        proxy.fault = fault
        abort(server, f"{kubernetes_cluster.namespace}:busy", "")
        assert status_of(kubernetes_cluster, "busy")["state"]["phase"] == "Aborted"
        assert len(proxy.requests(lambda asked: asked.method == "PUT")) == 3
        server.close()
