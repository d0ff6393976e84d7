"""Rows of jobs whose own status does not say that they run, or that nobody looks at them."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from backend.kubernetes.samples import chosen, described, sample
from backend.kubernetes.tables import table
from support.scripted_server import Stream, status
from support.waiting import wait_until

from torchx_tui.backends.kube.objects import events_path, pods_path
from torchx_tui.backends.kube.pods import seconds_of
from torchx_tui.backends.kubernetes import listed_pods, listing
from torchx_tui.backends.kubernetes.kinds.batch import BATCH
from torchx_tui.backends.kubernetes.kinds.cron import CRON
from torchx_tui.backends.kubernetes.kinds.jobset import JOBSET
from torchx_tui.backends.kubernetes.kinds.training import TRAINING
from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO

TRAIN_JOB = TRAINING[0]
KINDS = (VOLCANO, BATCH, CRON, JOBSET, TRAIN_JOB)
PODS = pods_path("jobs")
FORBIDDEN = status(403, "Forbidden", "alice may not list pods")


def created_at(job) -> Any:
    return seconds_of(job["metadata"]["creationTimestamp"])


class Cluster:
    """A server with jobs of several kinds in the namespace ``jobs``; lists are watched once somebody subscribes."""

    def __init__(self, server):
        self.server = server
        self.pods, self.streams = [], {}
        versions = {f"{kind.group}/{kind.version}" for kind in KINDS}
        server.serves(*versions)
        server.lists(events_path("jobs"))
        for kind in KINDS:
            self.put(kind)
        server.answers["GET", PODS] = lambda asked: self.answer(asked, self.pods)
        self.scheduler = KubernetesScheduler("test", server.client(), namespace="jobs")

    def put(self, kind, *jobs):
        for job in jobs:
            job["metadata"]["namespace"] = "jobs"
        self.server.answers["GET", kind.path("jobs")] = lambda asked: self.answer(asked, jobs)

    def answer(self, asked, items):
        if "watch" in asked.params:
            return 200, self.streams.setdefault(asked.path, Stream())
        return 200, {"items": chosen([*items], asked), "metadata": {"resourceVersion": "1"}}

    def recorded(self, group, name):
        """Put a recorded job with its pods on the server; return the time of its creation."""
        found = sample(group, name)
        self.put({"plain": BATCH, "jobset": JOBSET}[group], found["job"])
        if group == "jobset":
            self.put(BATCH, *found["jobs"])
        self.pods = found["pods"]
        return created_at(found["job"])

    def row(self):
        (row,) = self.scheduler.list()
        return row

    def lists_of_pods(self):
        return self.server.requests(path=PODS)


@pytest.fixture
def cluster(server):
    made = Cluster(server)
    yield made
    made.scheduler.close()
    for stream in made.streams.values():
        stream.end()


@pytest.fixture
def clock(monkeypatch):
    """Give the clock of rows, to be set."""
    made = SimpleNamespace(now=0.0)
    made.time = lambda: made.now
    for module in (listing, listed_pods):
        monkeypatch.setattr(module, "time", made)
    return made


@table("listed_pods.yaml", "unready", "name state running message")
def test_row_of_a_job_without_ready_pods(cluster, name, state, running, message):
    cluster.recorded("plain", name)
    row = cluster.row()
    assert (row.state.name, row.replicas_running) == (state, running)
    assert row.msg.startswith(message)
    assert row.started_at or state != "RUNNING"
    assert described(BATCH, sample("plain", name)).state is row.state


@pytest.mark.parametrize("name", ["suspended", "indexed-running", "indexed-done", "managed-by-other"])
def test_pods_of_other_jobs_are_not_listed(cluster, name):
    cluster.recorded("plain", name)
    cluster.row()
    assert cluster.lists_of_pods() == []


def not_ready(found):
    """Let a recorded JobSet have no job that is ready, as its pods' probes fail."""
    for one in (found["job"]["status"]["replicatedJobsStatus"], [job["status"] for job in found["jobs"]]):
        for counts in one:
            counts["ready"] = 0
    return found


def test_jobset_and_train_job_run_with_their_pods(cluster):
    found = not_ready(sample("jobset", "js-running"))
    cluster.pods = found["pods"]
    cluster.put(BATCH, *found["jobs"])
    cluster.put(JOBSET, found["job"])
    row = cluster.row()
    assert (row.state.name, row.replicas_running, row.kind) == ("RUNNING", 4, "JobSet")
    uid = "uid-of-train-job"
    found["job"]["metadata"]["ownerReferences"] = [{"kind": "TrainJob", "name": "t", "uid": uid}]
    metadata = {"name": "t", "uid": uid, "creationTimestamp": "2026-11-26T14:40:00Z"}
    cluster.put(TRAIN_JOB, {"metadata": metadata, "spec": {"trainer": {"numNodes": 4}}})
    row = cluster.row()
    assert (row.state.name, row.replicas_running, row.kind, row.msg) == ("RUNNING", 4, "TrainJob", "")


def test_owners_in_a_circle_end(cluster):
    cluster.recorded("plain", "not-ready")
    job = sample("plain", "not-ready")["job"]
    uid = job["metadata"]["uid"]
    job["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "not-ready", "uid": uid}]
    cluster.put(BATCH, job)
    assert cluster.scheduler.list() == []


def test_pods_are_watched_and_cost_nothing_while_nothing_changes(cluster):
    cluster.recorded("plain", "not-ready")
    (pod,) = cluster.pods
    cluster.pods = []
    cluster.scheduler.subscribe(lambda: None)
    wait_until(lambda: cluster.row().state.name == "PENDING" and PODS in cluster.streams, "the watch of the pods")
    cluster.server.asked.clear()
    for _ in range(3):
        assert cluster.row().state.name == "PENDING"
    assert cluster.server.asked == []
    cluster.streams[PODS].put({"type": "ADDED", "object": pod})
    wait_until(lambda: cluster.row().state.name == "RUNNING", "the pod")
    pod["metadata"]["deletionTimestamp"] = "2026-11-26T15:00:00Z"
    cluster.streams[PODS].put({"type": "MODIFIED", "object": pod})
    wait_until(lambda: cluster.row().state.name == "PENDING", "the pod's end")
    assert cluster.server.asked == []


def test_rows_do_not_wait_for_the_pods(cluster):
    cluster.recorded("plain", "not-ready")
    answer, is_open, ends = cluster.server.answers["GET", PODS], threading.Event(), []

    def answer_late(asked):
        ends.append(is_open.wait(10))
        return answer(asked)

    cluster.server.answers["GET", PODS] = answer_late
    cluster.scheduler.subscribe(lambda: None)
    assert cluster.row().state.name == "PENDING"
    assert ends == []
    is_open.set()
    wait_until(lambda: cluster.row().state.name == "RUNNING", "the pods")


def test_refused_pods_are_asked_for_once(cluster, caplog):
    cluster.recorded("plain", "not-ready")
    cluster.server.answers["GET", PODS] = FORBIDDEN
    for _ in range(3):
        assert cluster.row().state.name == "PENDING"
    assert len(cluster.lists_of_pods()) == 1
    cluster.scheduler.subscribe(lambda: None)
    for _ in range(3):
        assert cluster.row().state.name == "PENDING"
    assert len(cluster.lists_of_pods()) == 1
    assert caplog.text.count("the pods of jobs are not listed: alice may not list pods") == 1


def test_watched_pods_that_are_refused_are_given_up(cluster, caplog):
    cluster.recorded("plain", "not-ready")
    cluster.server.answers["GET", PODS] = FORBIDDEN
    cluster.scheduler.subscribe(lambda: None)
    wait_until(lambda: cluster.row() and "not listed" in caplog.text, "the refusal")
    count = len(cluster.lists_of_pods())
    cluster.row()
    assert len(cluster.lists_of_pods()) == count == 1


# Nobody has looked at it


def test_scheduler_that_says_nothing_is_named_after_a_while(cluster, clock):
    created = cluster.recorded("plain", "scheduler-missing")
    clock.now = created + 9
    assert cluster.row().msg.startswith("waits for a node: scheduler-missing-")
    clock.now = created + 12
    sentence = "waits for the scheduler no-such-scheduler, which has said nothing about it"
    assert cluster.row().msg.startswith(sentence)


@pytest.mark.parametrize(("after", "named"), [(9, False), (12, True)])
def test_kubernetes_own_scheduler_is_named_too(after, named):
    found = sample("plain", "scheduler-missing")
    del found["pods"][0]["spec"]["schedulerName"]
    response = described(BATCH, found, created_at(found["job"]) + after)
    assert ("the scheduler default-scheduler, which has said nothing" in response.msg) is named


def test_scheduler_that_placed_a_pod_is_not_named(cluster, clock):
    clock.now = cluster.recorded("plain", "scheduler-missing") + 60
    cluster.pods[0]["status"]["conditions"] = [{"type": "PodScheduled", "status": "True"}]
    assert cluster.row().msg.startswith("waits for a node")


@table("listed_pods.yaml", "new jobs", "word spec message")
def test_controller_that_does_not_run_is_named_by_itself(cluster, clock, word, spec, message):
    metadata = {"name": "new", "uid": "u", "creationTimestamp": "2026-11-26T14:40:00Z"}
    job = {"metadata": metadata, "spec": spec, "status": {}}
    cluster.put(next(kind for kind in KINDS if kind.word == word), job)
    clock.now = created_at(job) + 9
    assert cluster.row().msg == ""
    clock.now += 3
    row = cluster.row()
    assert (row.msg, row.state.name) == (message, "SUBMITTED")
