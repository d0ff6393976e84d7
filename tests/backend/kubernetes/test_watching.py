"""The list of jobs on a real API server: what it costs, and what becomes of it when the server fails."""

import re
import threading

import pytest
from support.api_proxy import Answer, api_proxy
from support.volcano_jobs import delete_job, make_job, start_job
from support.waiting import wait_until

from torchx_tui.backends.kube.api_server import ApiServer
from torchx_tui.backends.kubernetes.jobs import Jobs
from torchx_tui.backends.kubernetes.listing import ListedJobs
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.specs.errors import BackendUnavailableError
from torchx_tui.specs.status import AppState


def jobs_path(cluster):
    return f"/apis/batch.volcano.sh/v1alpha1/namespaces/{cluster.namespace}/jobs"


def start(cluster, name):
    """Put a job on the server that Volcano does not look at: its queue does not exist."""
    start_job(cluster, make_job(name, queue="nosuch"))


# For what would disturb other tests: many jobs, a server that ends, a history that is dropped.
own_server = pytest.mark.usefixtures("own_cluster")


class Watched:
    """Rows that a watch keeps, and how many changes were reported."""

    def __init__(self, kubeconfig, namespace, monkeypatch):
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        self.server = ApiServer(timeout=5)
        self.rows = ListedJobs(lambda: [Jobs(self.server, VOLCANO)], namespace)
        self.changes = 0

    def begin(self):
        self.rows.subscribe(self._count)
        self.rows.rows()
        wait_until(self.holds, "the watch")

    def holds(self):
        return self.rows.is_current

    def names(self):
        return sorted(row.app_id.partition(":")[2] for row in self.rows.rows())

    def state(self, name):
        return next((row.state for row in self.rows.rows() if row.app_id.endswith(f":{name}")), None)

    def close(self):
        self.rows.close()
        self.server.close()

    def _count(self):
        self.changes += 1


@pytest.fixture
def cluster(request):
    """Give the cluster that all tests share, or one of the test's own where it is marked so."""
    return request.getfixturevalue("own_cluster" if "own_cluster" in request.fixturenames else "kubernetes_cluster")


@pytest.fixture
def proxy(cluster, tmp_path):
    with api_proxy(cluster, tmp_path) as made:
        yield made


@pytest.fixture
def watched(proxy, cluster, monkeypatch):
    made = Watched(str(proxy.kubeconfig), cluster.namespace, monkeypatch)
    yield made
    made.close()


def set_phase(cluster, name, phase):
    path = f"{jobs_path(cluster)}/{name}"
    job = cluster.request("GET", path)
    job["status"] = {"state": {"phase": phase, "lastTransitionTime": "2026-11-21T10:00:00Z"}}
    cluster.request("PUT", f"{path}/status", job)


def test_one_request_a_page_and_none_while_a_watch_holds(cluster, proxy, watched):
    for number in range(3):
        start(cluster, f"job-{number}")
    assert watched.names() == ["job-0", "job-1", "job-2"]
    assert [(asked.method, asked.path) for asked in proxy.asked] == [("GET", jobs_path(cluster))]
    watched.begin()
    proxy.forget()
    for _ in range(20):
        assert len(watched.rows.rows()) == 3
    start(cluster, "job-3")
    wait_until(lambda: "job-3" in watched.names(), "the new job")
    set_phase(cluster, "job-3", "Running")
    wait_until(lambda: watched.state("job-3") is AppState.RUNNING, "its state")
    delete_job(cluster, "job-3")
    wait_until(lambda: "job-3" not in watched.names(), "its end")
    # The watch itself may begin after the requests were forgotten.
    assert [asked for asked in proxy.asked if "watch" not in asked.params] == []
    wait_until(lambda: watched.changes >= 2, "the changes")


@own_server
def test_a_server_that_was_killed_in_mid_watch(cluster, monkeypatch):
    start(cluster, "before")
    watched = Watched(cluster.kubeconfig, cluster.namespace, monkeypatch)
    try:
        watched.begin()
        before = watched.changes
        cluster.kill_api_server()
        words = wait_until(lambda: _outage(watched), "the error")
        assert re.search(r"the API server of test .*(refuses the connection|closed the connection)", words)
        wait_until(lambda: watched.changes > before, "a change from the watch")
        cluster.start()
        start(cluster, "after")
        wait_until(lambda: _try(watched) == ["after", "before"], "both jobs")
        wait_until(watched.holds, "the watch")
        start(cluster, "last")
        wait_until(lambda: "last" in watched.names(), "what came by the watch")
    finally:
        watched.close()


def _outage(watched):
    """Return why the rows cannot be read; empty while they can."""
    try:
        watched.rows.rows()
    except BackendUnavailableError as error:
        return str(error)
    return ""


def _try(watched):
    try:
        return watched.names()
    except BackendUnavailableError:
        return []


@own_server
def test_a_watch_that_is_too_old_lists_anew(cluster, proxy, watched):
    start(cluster, "before")
    watched.begin()
    # The watch is cut off, and while it is away the history is dropped, as it is after a night.
    refuse = threading.Event()
    refuse.set()
    proxy.fault = lambda asked: Answer(503, b"away") if refuse.is_set() else None
    # Rows are current once they are listed: the watch may begin after the first cut.
    wait_until(lambda: proxy.cut() or not watched.holds(), "the cut")
    start(cluster, "meanwhile")
    delete_job(cluster, "before")
    cluster.compact()
    cluster.kill_api_server()
    cluster.start()
    proxy.forget()
    refuse.clear()
    wait_until(lambda: _try(watched) == ["meanwhile"], "the new list")
    wait_until(watched.holds, "the watch")
