"""What replicas use, by the metrics API."""

from types import SimpleNamespace

import pytest
from backend.kubernetes.samples import chosen, sample, serve
from support.scripted_server import status

from torchx_tui.backends.kube.objects import pods_path
from torchx_tui.backends.kubernetes import usage
from torchx_tui.backends.kubernetes.kinds.batch import BATCH
from torchx_tui.backends.types import ReplicaUsage
from torchx_tui.specs.errors import JobNotFoundError, SchedulerError

METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces/jobs/pods"
PLAIN_404 = 404, b"404 page not found\n"


class Measured:
    """A server with a recorded Indexed Job of four pods and their metrics."""

    def __init__(self, server, scheduler):
        self.server, self.scheduler = server, scheduler
        self.found = sample("plain", "indexed-running")
        self.app_id = serve(server, BATCH, self.found)
        self.items = [measured(pod) for pod in self.found["pods"]]
        server.answers["GET", METRICS] = lambda asked: (200, {"items": chosen(self.items, asked)})

    def usage(self):
        return self.scheduler.usage(self.app_id)

    def asked(self):
        return self.server.paths("GET").count(METRICS)


def measured(pod, cpu="1500m", memory="650528Ki"):
    """Return a pod's metrics, as metrics-server writes them."""
    containers = [{"name": "sidecar", "usage": {"cpu": "9", "memory": "9Gi"}}]
    containers.append({"name": "main", "usage": {"cpu": cpu, "memory": memory}})
    metadata = {name: pod["metadata"][name] for name in ("name", "namespace", "labels")}
    return {"metadata": metadata, "timestamp": "2026-11-26T14:45:00Z", "window": "15s", "containers": containers}


@pytest.fixture
def job(server, scheduler):
    return Measured(server, scheduler)


@pytest.fixture
def clock(monkeypatch):
    made = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(usage, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def test_each_replica_has_its_own_use(job):
    job.items[2] = measured(job.found["pods"][2], "259106n", "1Gi")
    limits = {"limits": {"cpu": "2", "memory": "2Gi"}}
    for pod in job.found["pods"]:
        pod["spec"]["containers"][0]["resources"] = limits
    by_pod = {pod["metadata"]["name"]: BATCH.replica_of(pod).number for pod in job.found["pods"]}
    number = by_pod[job.items[2]["metadata"]["name"]]
    totals = {"cpu_total": 2.0, "memory_total": 2 * 2**30}
    expected = [ReplicaUsage("main", k, cpu=1.5, memory=650528 * 2**10, **totals) for k in range(4)]
    expected[number] = ReplicaUsage("main", number, cpu=0.000259106, memory=2**30, **totals)
    assert sorted(job.usage(), key=lambda one: one.replica) == expected


def test_use_without_limits_has_no_total(job):
    assert {(one.cpu, one.cpu_total, one.memory_total) for one in job.usage()} == {(1.5, None, None)}


def test_pod_that_was_not_measured_is_left_out(job):
    del job.items[1:]
    assert len(job.usage()) == 1


def test_use_is_kept_as_long_as_the_server_keeps_it(job, clock):
    for clock.now in (1000.0, 1010.0, 1015.0):
        assert len(job.usage()) == 4
    assert job.asked() == 1
    clock.now = 1016.0
    job.usage()
    assert job.asked() == 2


@pytest.mark.parametrize(
    ("answer", "words"),
    [(PLAIN_404, "metrics-server is not installed"), (status(403, "Forbidden", "no metrics for alice"), "for alice")],
)
def test_refusal_is_written_once(job, caplog, clock, answer, words):
    job.server.answers["GET", METRICS] = answer
    for clock.now in (1000.0, 1100.0, 1200.0):
        assert job.usage() == []
    assert job.asked() == 1
    assert caplog.text.count("what replicas in jobs use is not shown") == 1
    assert words in caplog.text


@pytest.mark.parametrize("code", [400, 503])
def test_server_that_cannot_answer_now_is_asked_again(job, clock, code):
    job.server.answers["GET", METRICS] = status(code, "ServiceUnavailable", "unable to handle the request")
    for clock.now in (1000.0, 1001.0):
        with pytest.raises(SchedulerError):
            job.usage()


@pytest.mark.parametrize("usage", [None, {}, {"cpu": "x", "memory": []}, {"cpu": None}])
def test_odd_metrics_cost_their_own_figures(job, usage):
    job.items[0]["containers"][1]["usage"] = usage
    job.items[1] = {"metadata": {"name": 5}, "containers": "none"}
    assert [one.cpu for one in job.usage()].count(1.5) == 2


def test_ended_job_is_not_measured(job):
    job.app_id = serve(job.server, BATCH, sample("plain", "indexed-done"))
    assert job.usage() == []
    assert job.asked() == 0


def test_unknown_job_has_no_use(job):
    job.server.answers["GET", BATCH.path("jobs", "gone")] = status(404, "NotFound", "gone")
    job.server.lists(pods_path("jobs"))
    with pytest.raises(JobNotFoundError):
        job.scheduler.usage("jobs:job:gone")
