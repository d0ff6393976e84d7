"""What looking at a job again and again costs: nothing while it does not change, three requests when it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.api_proxy import Answer, ApiProxy, Asked, api_proxy
from support.kubernetes_cluster import KubernetesCluster
from support.volcano_jobs import delete_job, make_job, pods_of, start_job, status_of
from support.waiting import wait_until

from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler
from torchx_tui.backends.types import DescribeAppResponse
from torchx_tui.specs import AppState


class Looked:
    """A scheduler behind a proxy, whose list is watched as the dashboard does."""

    def __init__(self, cluster: KubernetesCluster, proxy: ApiProxy) -> None:
        self.cluster = cluster
        self.proxy = proxy
        self.scheduler = KubernetesScheduler("torchx")
        self.scheduler.subscribe(lambda: None)
        self.scheduler.list()
        wait_until(lambda: proxy.requests(is_watch_of("jobs")), "the watch of the list")

    def describe(self, name: str) -> DescribeAppResponse:
        found = self.scheduler.describe(f"{self.cluster.namespace}:{name}")
        assert found is not None
        return found

    def start(self, job: dict, *, state: AppState, words: str = "") -> None:
        name = job["metadata"]["name"]
        start_job(self.cluster, job)
        wait_until(lambda: (found := self.describe(name)).state is state and words in found.msg, f"{name} is {state}")

    def settle(self, name: str, *watches: str) -> None:
        """Look at a job until it costs nothing, with these watches open."""

        def costs_nothing() -> bool:
            self.proxy.forget()
            for _ in range(3):
                self.describe(name)
            return not self.proxy.asked

        wait_until(lambda: self.describe(name) and all(self.proxy.requests(is_watch_of(w)) for w in watches), "watches")
        wait_until(costs_nothing, "looks that cost nothing")


def is_watch_of(kind: str) -> Callable[[Asked], bool]:
    return lambda asked: asked.is_watch and asked.path.endswith(f"/{kind}")


@pytest.fixture
def looked(kubernetes_cluster, tmp_path, monkeypatch) -> Iterator[Looked]:
    with api_proxy(kubernetes_cluster, tmp_path) as proxy:
        monkeypatch.setenv("KUBECONFIG", str(proxy.kubeconfig))
        made = Looked(kubernetes_cluster, proxy)
        yield made
        made.scheduler.close()


def test_a_running_job_that_does_not_change_costs_nothing(looked: Looked) -> None:
    looked.start(make_job("long", "sleep 600", replicas=2), state=AppState.RUNNING)
    looked.settle("long", "pods")
    for _ in range(100):
        assert looked.describe("long").state is AppState.RUNNING
    assert looked.proxy.asked == []
    # What happens to it is seen all the same, for two requests a look: the job and its pods.
    looked.cluster.request(
        "DELETE", f"/api/v1/namespaces/{looked.cluster.namespace}/pods/long-worker-0-0?gracePeriodSeconds=0"
    )

    def is_seen() -> bool:
        looked.proxy.forget()
        replicas = looked.describe("long").roles_statuses[0].replicas
        assert len(looked.proxy.asked) <= 3
        return replicas[0].state is not AppState.RUNNING

    wait_until(is_seen, "the pod that is gone")


def test_a_pending_job_costs_nothing_and_learns_why_by_the_watch(looked: Looked) -> None:
    volumes = [{"name": "settings", "configMap": {"name": "nosuch"}}]
    mounts = [{"name": "settings", "mountPath": "/settings"}]
    job = make_job("stuck", pod={"volumes": volumes}, container={"volumeMounts": mounts})
    looked.start(job, state=AppState.PENDING, words="FailedMount")
    looked.settle("stuck", "pods", "events")
    for _ in range(100):
        looked.describe("stuck")
    assert looked.proxy.asked == []
    # Other jobs' events change nothing, its own do.
    (pod,) = pods_of(looked.cluster, "stuck")
    for name, uid in (("other", "other"), (pod["metadata"]["name"], pod["metadata"]["uid"])):
        about = {"kind": "Pod", "namespace": looked.cluster.namespace, "name": name, "uid": uid}
        event = {
            "metadata": {"generateName": "event-"}, "involvedObject": about, "type": "Normal",
            "reason": "FailedAttachVolume", "message": f"the disk of {name} is away",
            "lastTimestamp": "2099-01-01T00:00:00Z",
        }  # fmt: skip
        looked.cluster.request("POST", f"/api/v1/namespaces/{looked.cluster.namespace}/events", event)
    wait_until(lambda: "the disk of stuck-worker-0-0 is away" in looked.describe("stuck").msg, "the new cause")
    assert looked.proxy.asked == []


def test_a_job_that_was_removed_is_gone_at_once(looked: Looked) -> None:
    looked.start(make_job("long", "sleep 600"), state=AppState.RUNNING)
    looked.settle("long", "pods")
    delete_job(looked.cluster, "long")
    wait_until(lambda: looked.scheduler.describe(f"{looked.cluster.namespace}:long") is None, "its end")


def test_our_own_cancel_is_seen_at_once(looked: Looked) -> None:
    looked.start(make_job("long", "sleep 600"), state=AppState.RUNNING)
    looked.settle("long", "pods")
    looked.scheduler.cancel(f"{looked.cluster.namespace}:long")
    found = looked.describe("long")
    assert found.state is AppState.CANCELLED
    assert found.finished_at is not None
    assert found.started_at is not None
    wait_until(lambda: not pods_of(looked.cluster, "long"), "its pods' end")
    # Volcano keeps the time that was written, as a transition of its own.
    assert status_of(looked.cluster, "long")["conditions"][-1]["status"] == "Aborted"
    assert looked.describe("long").finished_at == found.finished_at


def test_a_watch_of_pods_that_is_not_allowed(looked: Looked) -> None:
    looked.proxy.fault = lambda asked: (
        Answer.status_object(403, "Forbidden", "no watch") if is_watch_of("pods")(asked) else None
    )
    looked.start(make_job("long", "sleep 600"), state=AppState.RUNNING)
    wait_until(lambda: looked.describe("long") and looked.proxy.requests(is_watch_of("pods")), "a refused watch")
    looked.proxy.forget()
    for _ in range(50):
        assert looked.describe("long").state is AppState.RUNNING
    # Read anew after seconds, not each time; and no watch is tried meanwhile.
    assert len(looked.proxy.asked) <= 4
    assert not looked.proxy.requests(is_watch_of("pods"))
