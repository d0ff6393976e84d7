"""Why jobs are in their states, on real pods; what looking at a job costs; ending jobs."""

import time

import pytest
from backend.kubernetes.tables import table
from support.volcano_jobs import delete_job, make_job, start_job
from support.waiting import wait_until

from torchx_tui.backends.kube.api_server import ApiServer
from torchx_tui.backends.kube.objects import uid_of
from torchx_tui.backends.kubernetes.describe import describe, read_facts
from torchx_tui.backends.kubernetes.jobs import Jobs
from torchx_tui.backends.kubernetes.lifecycle import abort, remove
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.status import AppState


@pytest.fixture
def server(kubernetes_cluster):
    made = ApiServer()
    yield Jobs(made, VOLCANO)
    made.close()


def described(server, app_id):
    now = time.time()
    facts = read_facts(server, app_id, now)
    assert facts is not None
    return describe(VOLCANO, facts, now)


def wait_described(server, app_id, condition):
    def look():
        response = described(server, app_id)
        return response if condition(response) else None

    return wait_until(look, f"the state of {app_id}")


def says(server, app_id, words):
    return wait_described(server, app_id, lambda response: words in response.msg)


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


def test_a_job_of_the_same_name_is_not_hit(server, kubernetes_cluster):
    app_id = start_job(kubernetes_cluster, make_job("same", "sleep 600"))
    job = server.find(app_id)
    assert job is not None
    delete_job(kubernetes_cluster, "same")
    wait_until(lambda: server.find(app_id) is None, "the end of the first")
    start_job(kubernetes_cluster, make_job("same", "sleep 600"))
    for act in (abort, remove):
        with pytest.raises(SchedulerError, match="is another job now"):
            act(server, app_id, uid_of(job))
    assert server.find(app_id) is not None
    assert described(server, app_id).state is not AppState.CANCELLED
