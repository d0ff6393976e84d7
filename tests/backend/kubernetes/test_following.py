"""Requests of repeated descriptions: none while a job does not change."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import pytest
from support.api_proxy import api_proxy
from support.scripted_server import NOT_FOUND, Stream, scripted_server, status
from support.volcano_jobs import make_job, pods_of, start_job
from support.waiting import wait_until

from torchx_tui.backends.kubernetes import following
from torchx_tui.backends.kubernetes.following import JobLooks
from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler


def test_pending_job_on_a_cluster(kubernetes_cluster, tmp_path, monkeypatch):
    job = make_job(
        "stuck",
        pod={"volumes": [{"name": "settings", "configMap": {"name": "nosuch"}}]},
        container={"volumeMounts": [{"name": "settings", "mountPath": "/settings"}]},
    )
    with api_proxy(kubernetes_cluster, tmp_path) as proxy:
        monkeypatch.setenv("KUBECONFIG", str(proxy.kubeconfig))
        scheduler = KubernetesScheduler("torchx")
        scheduler.subscribe(lambda: None)
        scheduler.list()
        app_id = start_job(kubernetes_cluster, job)

        def message():
            found = scheduler.describe(app_id)
            return found.msg if found else ""

        def watched():
            return {asked.path.rpartition("/")[2] for asked in proxy.requests(lambda asked: asked.is_watch)}

        def costs_nothing():
            proxy.forget()
            for _ in range(3):
                message()
            return not proxy.asked

        wait_until(lambda: "FailedMount" in message() and watched() == {"jobs", "pods", "events"}, "the watches")
        wait_until(costs_nothing, "descriptions that cost nothing")
        # Events of other jobs change nothing, its own do.
        (pod,) = pods_of(kubernetes_cluster, "stuck")
        for name, uid in (("other", "other"), (pod["metadata"]["name"], pod["metadata"]["uid"])):
            about = {"kind": "Pod", "namespace": kubernetes_cluster.namespace, "name": name, "uid": uid}
            event = {
                "metadata": {"generateName": "event-"}, "involvedObject": about, "type": "Normal",
                "reason": "FailedAttachVolume", "message": f"the disk of {name} is away",
                "lastTimestamp": "2099-01-01T00:00:00Z",
            }  # fmt: skip
            kubernetes_cluster.request("POST", f"/api/v1/namespaces/{kubernetes_cluster.namespace}/events", event)
        wait_until(lambda: "the disk of stuck-worker-0-0 is away" in message(), "the new cause")
        assert proxy.asked == []
        scheduler.close()


# On a scripted server

JOB = "/apis/batch.volcano.sh/v1alpha1/namespaces/space/jobs/job-x"
PODS, EVENTS = "/api/v1/namespaces/space/pods", "/api/v1/namespaces/space/events"


def listed(*items, **metadata):
    return 200, {"items": list(items), "metadata": metadata}


class Scripted:
    """A pending job without one of its pods; the events of the watches are up to the test."""

    def __init__(self, made):
        self.made = made
        self.watches, self.version, self.is_watched = {}, "5", True
        made.answers["GET", JOB] = lambda asked: (200, self.job())
        self.lists(PODS, listed(pod("job-x-worker-0-0", "u1"), resourceVersion="7"))
        self.lists(EVENTS, listed(resourceVersion="9"))
        self.looks = JobLooks(made.api(), lambda app_id: self.version if self.is_watched else "")

    def job(self):
        job = make_job("job-x", replicas=2)
        metadata = {"namespace": "space", "uid": "u1", "resourceVersion": self.version}
        job["metadata"] |= {**metadata, "creationTimestamp": "2026-11-21T10:00:00Z"}
        return {**job, "status": {"state": {"phase": "Pending"}}}

    def lists(self, path, answer):
        def give(asked):
            if "watch" not in asked.params:
                return answer
            self.watches[path] = asked.params, Stream()
            return 200, self.watches[path][1]

        self.made.answers["GET", path] = give

    def described(self):
        found = self.looks.describe("space:job-x")
        assert found is not None
        return found[1]

    def message(self):
        return self.described().msg

    def wait_for_message(self, words):
        wait_until(lambda: self.message() == words, words)

    def requests(self):
        return sum("watch" not in one.params for one in self.made.asked)

    def costs(self, times=1):
        """Return the requests of each of some descriptions."""
        counts = [self.requests()]
        for _ in range(times):
            self.described()
            counts.append(self.requests())
        return [after - before for before, after in pairwise(counts)]

    def wait_for_request(self):
        wait_until(lambda: self.costs() != [0], "a description with requests")

    def put(self, path, item):
        self.watches[path][1].put({"type": "ADDED", "object": item})


def pod(name, owner):
    metadata = {"name": name, "uid": f"uid-{name}", "ownerReferences": [{"uid": owner}]}
    return {"metadata": metadata, "spec": {"containers": [], "nodeName": "n1"}, "status": {"phase": "Pending"}}


def event(name, message, minute, uid="u1"):
    return {
        "metadata": {"uid": f"event-{name}"}, "involvedObject": {"name": name, "uid": uid},
        "reason": "FailedCreate", "message": message, "lastTimestamp": f"2026-11-21T10:{minute:02d}:00Z",
    }  # fmt: skip


@pytest.fixture
def scripted():
    with scripted_server() as made:
        found = Scripted(made)
        yield found
        found.looks.close()
        for _, stream in found.watches.values():
            stream.end()


@pytest.fixture
def watching(scripted):
    """Give the job while both watches are open."""
    # The job, its pods, and the events of the job, of its group and of the pending pod.
    assert scripted.costs(3) == [5, 0, 0]
    wait_until(lambda: len(scripted.watches) == 2, "both watches")
    return scripted


def test_watches_continue_from_the_lists(watching):
    (pods, _), (events, _) = (watching.watches[path] for path in (PODS, EVENTS))
    assert (pods["labelSelector"], pods["resourceVersion"]) == ("volcano.sh/job-name=job-x", "7")
    assert events["resourceVersion"] == "9"
    assert sorted(events["fieldSelector"].split(",")) == [
        f"reason!={reason}" for reason in ("Created", "Killing", "Pulled", "Pulling", "Started", "SuccessfulCreate")
    ]


def test_events_of_the_job_and_its_group(watching):
    assert "FailedCreate" not in watching.message()
    # Not those of other objects, however alike their names are.
    for name, minute in (("job-xy", 50), ("other", 51)):
        watching.put(EVENTS, event(name, "not ours", minute))
    watching.put(EVENTS, event("job-x-u1", "the group", 1, ""))
    watching.wait_for_message("FailedCreate: the group")
    watching.put(EVENTS, event("job-x", "the job", 2))
    watching.wait_for_message("FailedCreate: the job")
    assert watching.costs() == [0]


def test_latest_version_of_an_event_of_a_pod(watching):
    watching.put(EVENTS, event("job-x", "the job", 2))
    watching.wait_for_message("FailedCreate: the job")
    of_pod = partial(event, "job-x-worker-0-0", uid="uid-job-x-worker-0-0")
    for message, reason, minute in (
        ("pod group is not ready", "FailedCreate: pod group is not ready", 5),
        ("pod group is ready", "", 6),
    ):
        watching.put(EVENTS, of_pod(message, minute))
        wait_until(lambda: watching.described().roles_statuses[0].replicas[0].reason == reason, reason)  # noqa: B023
    # It replaces no event of another object.
    assert watching.message() == "FailedCreate: the job"
    assert watching.costs() == [0]


def test_pod_of_the_job_is_read_again(watching):
    # A pod of an earlier job of the name changes nothing.
    watching.put(PODS, pod("job-x-worker-1-0", "u0"))
    for number in (3, 4):
        watching.put(EVENTS, event("job-x", f"the job {number}", number))
        watching.wait_for_message(f"FailedCreate: the job {number}")
        assert watching.costs() == [0]
    before = watching.requests()
    watching.put(PODS, pod("job-x-worker-1-0", "u1"))
    watching.wait_for_request()
    # Its events are known by the watch.
    assert watching.requests() == before + 2
    assert watching.message() == "FailedCreate: the job 4"


def test_other_version_of_the_job_is_read(watching):
    watching.version = "8"
    assert watching.costs(2) == [2, 0]
    # Without a watch of the list it may have changed each time.
    watching.is_watched = False
    assert watching.costs(2) == [2, 2]


def test_forgotten_job_is_read_again(scripted):
    assert scripted.costs(2) == [5, 0]
    scripted.looks.forget("space:job-x")
    scripted.looks.forget("space:job-x")
    assert scripted.costs(2) == [5, 0]
    scripted.made.answers["GET", JOB] = NOT_FOUND
    scripted.version = "9"
    assert scripted.looks.describe("space:job-x") is None


def test_list_without_a_version_is_not_watched(scripted):
    scripted.lists(PODS, listed())
    scripted.lists(EVENTS, listed())
    assert scripted.costs(20) == [4, *[0] * 19]
    assert not scripted.watches


def test_event_outlives_the_servers(scripted):
    # A list without a version is not watched: its events are read with each description.
    scripted.lists(EVENTS, listed(event("job-x", "the job", 2)))
    assert [scripted.message() for _ in range(2)] == ["FailedCreate: the job"] * 2
    wait_until(lambda: PODS in scripted.watches, "the watch")
    scripted.lists(EVENTS, listed())
    scripted.put(PODS, pod("job-x-worker-1-0", "u1"))
    scripted.wait_for_request()
    assert scripted.message() == "FailedCreate: the job"


def test_refused_watch_is_retried_later(scripted, monkeypatch):
    now = 1_800_000_000.0
    monkeypatch.setattr(following, "time", SimpleNamespace(time=lambda: now))
    refused = []

    def refuse(asked):
        if "watch" in asked.params:
            refused.append(asked.path)
            return status(403, "Forbidden", "no watch")
        return listed(resourceVersion="7")

    scripted.made.answers["GET", PODS] = refuse
    assert scripted.costs(2) == [4, 0]
    wait_until(lambda: refused and scripted.costs() != [0], "a description with requests")
    # Without a watch it is read every few seconds, until another watch is tried.
    for _ in range(3):
        assert scripted.costs() == [0]
        now += 2.0
        assert scripted.costs() == [0]
        now += 2.0
        assert scripted.costs() == [4]
    assert len(refused) == 1
    now += 31.0
    assert scripted.costs(2) == [4, 0]
    wait_until(lambda: len(refused) == 2, "another watch")
