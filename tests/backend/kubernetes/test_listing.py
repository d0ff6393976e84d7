"""Rows of jobs on a scripted server, and what repeated descriptions cost."""

import logging
import threading
import time
from types import SimpleNamespace

import pytest
from support.scripted_server import Stream, status
from support.volcano_jobs import make_job
from support.waiting import wait_until

from torchx_tui.backends.kube.api_server import ForbiddenError
from torchx_tui.backends.kubernetes import describe
from torchx_tui.backends.kubernetes.jobs import Jobs
from torchx_tui.backends.kubernetes.listing import ListedJobs
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.backends.shared import changes
from torchx_tui.backends.types import DescribeAppResponse
from torchx_tui.specs.status import AppState

ALL_JOBS = VOLCANO.path()
PODS, EVENTS = "/api/v1/namespaces/ns/pods", "/api/v1/namespaces/ns/events"


def jobs_path(namespace):
    return VOLCANO.path(namespace)


def job(name, version, phase="Running", namespace="ns", created="2026-11-21T10:00:00Z"):
    made = make_job(name)
    made["metadata"] |= {
        "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": str(version), "creationTimestamp": created,
    }  # fmt: skip
    return {**made, "status": {"state": {"phase": phase, "lastTransitionTime": "2026-11-21T10:00:00Z"}}}


class Scripted:
    """A server with a job that waits, without one of its pods; watches are up to the test."""

    def __init__(self, made):
        self.made = made
        self.has(job("first", 5, "Pending"))
        self.streams, self.changes = {}, []
        self.pods = []
        for path, version in ((jobs_path("ns"), "6"), (PODS, "7")):
            made.answers["GET", path] = lambda asked, path=path, version=version: self.answer(asked, path, version)
        made.lists(EVENTS)
        self.jobs = Jobs(made.api(), VOLCANO)
        self.rows = ListedJobs(lambda: [self.jobs], "ns")
        self.followed = describe.FollowedJobs(lambda _: self.jobs, lambda: self.rows.is_watched, self.rows.version)

    def has(self, made):
        self.job = made
        self.made.answers["GET", f"{jobs_path('ns')}/first"] = lambda asked: (200, self.job)

    def answer(self, asked, path, version):
        if "watch" in asked.params:
            self.streams[path] = Stream()
            return 200, self.streams[path]
        items = [self.job] if path == jobs_path("ns") else self.pods
        return 200, {"items": items, "metadata": {"resourceVersion": version}}

    def watch(self):
        end = self.rows.subscribe(lambda: self.changes.append(1))
        wait_until(lambda: self.rows.version("ns:first") == "5" and jobs_path("ns") in self.streams, "the watch")
        return end

    def put(self, path, item):
        self.streams[path].put({"type": "MODIFIED", "object": item})

    def message(self):
        found = self.followed.describe("ns:first")
        return found and found[1].msg

    def cost(self, watched=lambda: True):
        """Return the paths that a description asks for."""
        self.made.asked.clear()
        self.message()
        wait_until(watched, "the watch of the pods")
        return [one.path.rpartition("/")[2] for one in self.made.asked]

    def follow(self):
        """Return the paths that the first description asks for, with the watch of the pods."""
        return self.cost(lambda: PODS in self.streams)

    def listed(self):
        return [(row.app_id, row.state.name, row.msg) for row in self.rows.rows()]


@pytest.fixture
def scripted(server, monkeypatch):
    monkeypatch.setattr(changes, "FIRST_RETRY_S", 0.01)
    found = Scripted(server)
    yield found
    found.followed.close()
    found.rows.close()
    for stream in found.streams.values():
        stream.end()


def pod(k, owner="uid-first"):
    labels = {"torchx.pytorch.org/role-name": "worker", "torchx.pytorch.org/replica-id": str(k)}
    metadata = {"name": f"p{k}", "uid": f"uid-p{k}", "labels": labels, "ownerReferences": [{"uid": owner}]}
    return {"metadata": metadata, "spec": {"containers": [], "nodeName": "n1"}, "status": {"phase": "Pending"}}


def test_watch_keeps_the_rows(scripted):
    end = scripted.watch()
    scripted.made.asked.clear()
    scripted.put(jobs_path("ns"), job("first", 8))
    wait_until(lambda: scripted.listed() == [("ns:first", "RUNNING", "")], "its state")
    wait_until(lambda: scripted.changes, "the change")
    assert (scripted.made.asked, scripted.rows.version("ns:first")) == ([], "8")
    end()
    wait_until(lambda: scripted.rows.version("ns:first") == "", "the end of the watch")
    assert scripted.listed() == [("ns:first", "PENDING", "")]


def test_learnt_reason_is_of_a_state(scripted):
    scripted.watch()
    described = DescribeAppResponse("ns:first", AppState.PENDING, msg="it waits")
    scripted.rows.learn(VOLCANO, job("first", 5, "Pending"), described)
    assert scripted.listed() == [("ns:first", "PENDING", "it waits")]
    scripted.put(jobs_path("ns"), job("first", 8, "Pending"))
    wait_until(lambda: scripted.rows.version("ns:first") == "8", "the event")
    assert scripted.listed() == [("ns:first", "PENDING", "it waits")]
    scripted.put(jobs_path("ns"), job("first", 9))
    wait_until(lambda: scripted.listed() == [("ns:first", "RUNNING", "")], "another state")


# Descriptions


def test_job_that_does_not_change_costs_no_request(scripted):
    scripted.watch()
    # The job, the list and the watch of its pods, and the events of the job and of its group.
    assert sorted(scripted.follow()) == ["events", "events", "first", "pods", "pods"]
    assert [scripted.cost() for _ in range(3)] == [[], [], []]
    assert next(one for one in scripted.made.answers if one[1] == PODS)
    scripted.put(PODS, pod(0))
    wait_until(lambda: scripted.message() != "has no pod yet: worker/0", "the pod")
    assert scripted.cost() == []


def test_pod_of_an_earlier_job_changes_nothing(scripted):
    scripted.watch()
    scripted.follow()
    scripted.put(PODS, pod(0, "uid-other"))
    scripted.put(PODS, pod(1))
    wait_until(lambda: "events" in scripted.cost(), "the second pod")
    assert scripted.message() == "has no pod yet: worker/0"


def test_changed_job_is_read_again(scripted):
    scripted.watch()
    scripted.follow()
    scripted.has(job("first", 8))
    scripted.put(jobs_path("ns"), scripted.job)
    wait_until(lambda: scripted.rows.version("ns:first") == "8", "the event")
    assert scripted.cost() == ["first", "events", "events"]
    assert scripted.cost() == []


def test_refused_pods_leave_no_watch(scripted):
    scripted.watch()
    scripted.made.answers["GET", PODS] = status(403, "Forbidden", "no pods")
    for _ in range(3):
        assert scripted.message() == "no pods"
    wait_until(lambda: not [one for one in threading.enumerate() if one.name == "kubernetes-pods"], "the threads' end")


def test_unwatched_job_is_read_each_time(scripted):
    assert [scripted.cost() for _ in range(2)] == [["first", "pods", "events", "events"]] * 2
    assert not scripted.streams


def test_events_are_asked_for_again_after_a_while(scripted, monkeypatch):
    scripted.watch()
    scripted.follow()
    monkeypatch.setattr(describe, "_EVENTS_S", 0.0)
    assert scripted.cost() == ["events", "events"]


def test_events_of_a_job_that_stays_are_asked_for_more_seldom(scripted, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(describe, "time", SimpleNamespace(time=lambda: now[0]))
    scripted.watch()
    scripted.follow()
    asked_at = []
    for now[0] in range(1000, 1200):
        if scripted.cost():
            asked_at.append(now[0] - 1000)
    assert asked_at == [10, 20, 40, 80, 160]
    scripted.put(PODS, pod(0))
    wait_until(lambda: "events" in scripted.cost(), "the pod")
    assert scripted.cost() == []
    now[0] += 10
    assert "events" in scripted.cost()


def test_snapshot_of_a_followed_job_costs_no_request(scripted):
    end = scripted.watch()
    scripted.jobs.watched = scripted.followed.watched

    def snapshot():
        scripted.made.asked.clear()
        taken = scripted.jobs.snapshot("ns:first", time.monotonic())
        return len(scripted.made.asked), len(taken.pods)

    assert snapshot() == (2, 0)
    scripted.follow()
    assert snapshot() == (0, 0)
    scripted.put(PODS, pod(0))
    wait_until(lambda: snapshot() == (0, 1), "the pod")
    end()
    wait_until(lambda: scripted.rows.version("ns:first") == "", "the end of the watch")
    assert snapshot()[0] == 2


def test_forgotten_job_is_read_again(scripted):
    scripted.watch()
    scripted.follow()
    for _ in range(2):
        scripted.followed.forget("ns:first")
    assert "first" in scripted.cost()
    scripted.made.answers["GET", f"{jobs_path('ns')}/first"] = status(404, "NotFound", "gone")
    scripted.followed.forget("ns:first")
    assert scripted.message() is None


def test_start_in_a_row_is_the_earliest_that_was_seen(scripted):
    def is_listed(at):
        made = job("first", 9)
        made["status"]["state"]["lastTransitionTime"] = f"2026-11-21T10:{at}:00Z"
        scripted.has(made)
        (row,) = scripted.rows.rows()
        return row.started_at

    first = is_listed("05")
    # Volcano writes the time anew when the counts of pods change.
    assert (is_listed("09"), is_listed("30")) == (first, first)
    described = DescribeAppResponse("ns:first", AppState.RUNNING, started_at=first - 7)
    scripted.rows.learn(VOLCANO, scripted.job, described)
    assert is_listed("31") == first - 7


# Several namespaces


@pytest.fixture
def watched(scripted):
    return ListedJobs(lambda: [Jobs(scripted.made.api(), VOLCANO)], "ns")


def test_forbidden_namespace_hides_no_other(scripted, watched, caplog):
    scripted.made.answers["GET", jobs_path("theirs")] = status(403, "Forbidden", "alice may not list jobs in theirs")
    watched.add("theirs")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert [row.app_id for row in watched.rows()] == ["ns:first"]
    assert caplog.text.count("the jobs of theirs are not listed: alice may not list jobs in theirs") == 1
    with pytest.raises(ForbiddenError):
        ListedJobs(lambda: [Jobs(scripted.made.api(), VOLCANO)], "theirs").rows()


def test_each_namespace_has_its_own_rows(scripted, watched):
    other = job("of-other", 5, namespace="other", created="2026-11-22T10:00:00Z")
    for path in (jobs_path("other"), ALL_JOBS):
        scripted.made.lists(path, other)
    watched.add("other")
    watched.add("other")
    # The latest first.
    assert [row.app_id for row in watched.rows()] == ["other:of-other", "ns:first"]
    assert scripted.made.paths("GET") == [jobs_path("ns"), jobs_path("other")]
    ids = ("ns:first", "other:of-other", "ns:gone", "nowhere:first")
    assert [watched.uid(app_id) for app_id in ids] == ["uid-first", "uid-of-other", "", ""]
    # Without a watch what was listed may have changed.
    assert watched.version("ns:first") == ""
    everywhere = ListedJobs(lambda: [Jobs(scripted.made.api(), VOLCANO)], "")
    everywhere.add("ns")
    assert [row.app_id for row in everywhere.rows()] == ["other:of-other"]
    assert scripted.made.paths("GET")[2:] == [ALL_JOBS]
