"""What looking at a job again and again costs: nothing while it does not change, three requests when it does."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest
from support.api_proxy import api_proxy
from support.scripted_server import NOT_FOUND, Stream, scripted_server, status
from support.volcano_jobs import make_job, pods_of, start_job, status_of
from support.waiting import wait_until

from torchx_tui.backends.kubernetes import following
from torchx_tui.backends.kubernetes.following import JobLooks
from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler
from torchx_tui.specs import AppState


class Looked:
    """A scheduler behind a proxy, whose list is watched as the dashboard does."""

    def __init__(self, cluster, proxy):
        self.cluster = cluster
        self.proxy = proxy
        self.scheduler = KubernetesScheduler("torchx")
        self.scheduler.subscribe(lambda: None)
        self.scheduler.list()
        wait_until(lambda: proxy.requests(is_watch_of("jobs")), "the watch of the list")

    def describe(self, name):
        found = self.scheduler.describe(f"{self.cluster.namespace}:{name}")
        assert found is not None
        return found

    def start(self, job, *, state, words=""):
        name = job["metadata"]["name"]
        start_job(self.cluster, job)
        wait_until(lambda: (found := self.describe(name)).state is state and words in found.msg, f"{name} is {state}")

    def settle(self, name, *watches):
        """Look at a job until it costs nothing, with these watches open."""

        def costs_nothing():
            self.proxy.forget()
            for _ in range(3):
                self.describe(name)
            return not self.proxy.asked

        wait_until(lambda: self.describe(name) and all(self.proxy.requests(is_watch_of(w)) for w in watches), "watches")
        wait_until(costs_nothing, "looks that cost nothing")


def is_watch_of(kind):
    return lambda asked: asked.is_watch and asked.path.endswith(f"/{kind}")


@pytest.fixture
def looked(kubernetes_cluster, tmp_path, monkeypatch):
    with api_proxy(kubernetes_cluster, tmp_path) as proxy:
        monkeypatch.setenv("KUBECONFIG", str(proxy.kubeconfig))
        made = Looked(kubernetes_cluster, proxy)
        yield made
        made.scheduler.close()


def test_a_pending_job_costs_nothing_and_learns_why_by_the_watch(looked):
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


def test_our_own_cancel_is_seen_at_once(looked):
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


# Where a server answers as it is told to

AT = "/apis/batch.volcano.sh/v1alpha1/namespaces/space/jobs/job-x"
OF_SPACE = "/api/v1/namespaces/space"


class Scripted:
    """A job that waits for one of its pods; what the watches tell is up to the test."""

    def __init__(self, made):
        self.made = made
        self.watches: dict[str, tuple[dict[str, str], Stream]] = {}
        self.version = "5"
        self.is_watched = True
        made.answers["GET", AT] = lambda asked: (200, self._job())
        for kind, items, version in (("pods", [pod("job-x-worker-0-0", "u1")], "7"), ("events", [], "9")):
            answer = 200, {"items": items, "metadata": {"resourceVersion": version}}
            made.answers["GET", f"{OF_SPACE}/{kind}"] = partial(self._answer, kind, answer)
        self.looks = JobLooks(made.api(), lambda app_id: self.version if self.is_watched else "")

    def _job(self):
        job = make_job("job-x", replicas=2)
        metadata = {"namespace": "space", "uid": "u1", "resourceVersion": self.version}
        job["metadata"] |= {**metadata, "creationTimestamp": "2026-11-21T10:00:00Z"}
        return {**job, "status": {"state": {"phase": "Pending"}}}

    def _answer(self, kind, answer, asked):
        if "watch" not in asked.params:
            return answer
        self.watches[kind] = asked.params, Stream()
        return 200, self.watches[kind][1]

    def described(self):
        found = self.looks.describe("space:job-x")
        assert found is not None
        return found[1]

    def cost(self):
        """Describe it, and return how many questions that took."""
        before = self.questions()
        self.described()
        return self.questions() - before

    def questions(self):
        return sum("watch" not in one.params for one in self.made.asked)

    def tell(self, kind, item):
        self.watches[kind][1].put({"type": "ADDED", "object": item})


def pod(name, owner):
    metadata = {"name": name, "uid": f"uid-{name}", "ownerReferences": [{"uid": owner}]}
    return {"metadata": metadata, "spec": {"containers": [], "nodeName": "n1"}, "status": {"phase": "Pending"}}


def event(name, message, minute, uid=""):
    return {
        "metadata": {"uid": f"event-{name}"},
        "involvedObject": {"name": name, "uid": uid},
        "reason": "FailedCreate",
        "message": message,
        "lastTimestamp": f"2026-11-21T10:{minute:02d}:00Z",
    }


@pytest.fixture
def scripted():
    with scripted_server() as made:
        found = Scripted(made)
        yield found
        found.looks.close()
        for _, stream in found.watches.values():
            stream.end()


def test_what_is_read_of_a_job_holds_until_a_watch_tells_otherwise(scripted):
    # The job, its pods, the events of the job, of its group and of the pod that waits; then nothing.
    assert [scripted.cost() for _ in range(3)] == [5, 0, 0]
    wait_until(lambda: len(scripted.watches) == 2, "both watches")
    (pods, _), (events, _) = (scripted.watches[kind] for kind in ("pods", "events"))
    assert (pods["labelSelector"], pods["resourceVersion"]) == ("volcano.sh/job-name=job-x", "7")
    assert events["resourceVersion"] == "9"
    assert sorted(events["fieldSelector"].split(",")) == [
        f"reason!={reason}" for reason in ("Created", "Killing", "Pulled", "Pulling", "Started", "SuccessfulCreate")
    ]
    assert "FailedCreate" not in scripted.described().msg
    # Events of other objects are not the job's, however alike their names are; those of its group and pods are.
    scripted.tell("events", event("job-xy", "not ours", 50, "u1"))
    scripted.tell("events", event("other", "not ours", 51, "u1"))
    scripted.tell("events", event("job-x-u1", "the group", 1))
    wait_until(lambda: scripted.described().msg == "FailedCreate: the group", "the event of the group")
    scripted.tell("events", event("job-x", "the job", 2, "u1"))
    wait_until(lambda: scripted.described().msg == "FailedCreate: the job", "the event of the job")
    assert scripted.cost() == 0
    # A pod of an earlier job of the name changes nothing; one of its own does, and its events need not be asked for.
    scripted.tell("pods", pod("job-x-worker-1-0", "u0"))
    for number in (3, 4):
        scripted.tell("events", event("job-x", f"the job {number}", number, "u1"))
        wait_until(lambda number=number: scripted.described().msg.endswith(f"the job {number}"), "the event")
        assert scripted.cost() == 0
    # Each event is known by itself, as it was told last.
    of_pod = partial(event, "job-x-worker-0-0", uid="uid-job-x-worker-0-0")
    reason = lambda: scripted.described().roles_statuses[0].replicas[0].reason  # noqa: E731
    scripted.tell("events", of_pod("pod group is not ready", 5))
    wait_until(lambda: reason() == "FailedCreate: pod group is not ready", "the event of the pod")
    assert scripted.described().msg == "FailedCreate: the job 4"
    scripted.tell("events", of_pod("pod group is ready", 6))
    wait_until(lambda: reason() == "", "what it says later")
    assert scripted.cost() == 0
    scripted.tell("pods", pod("job-x-worker-1-0", "u1"))
    questions = scripted.questions()
    wait_until(lambda: scripted.cost(), "a look")
    assert scripted.questions() == questions + 2
    assert scripted.described().msg == "FailedCreate: the job 4"
    # Another version of the job is read.
    scripted.version = "8"
    assert [scripted.cost(), scripted.cost()] == [2, 0]
    # Where no watch of the list holds, nothing is known to hold.
    scripted.is_watched = False
    assert [scripted.cost(), scripted.cost()] == [2, 2]


def test_a_job_that_is_about_to_be_changed_is_read_anew(scripted):
    assert [scripted.cost(), scripted.cost()] == [5, 0]
    scripted.looks.forget("space:job-x")
    scripted.looks.forget("space:job-x")
    assert [scripted.cost(), scripted.cost()] == [5, 0]
    scripted.made.answers["GET", AT] = NOT_FOUND
    scripted.version = "9"
    assert scripted.looks.describe("space:job-x") is None


def test_a_list_without_a_version_is_not_watched(scripted):
    for kind in ("pods", "events"):
        scripted.made.answers["GET", f"{OF_SPACE}/{kind}"] = 200, {"items": []}
    assert [scripted.cost() for _ in range(100)] == [4, *[0] * 99]
    assert not any("watch" in one.params for one in scripted.made.asked)


def test_what_an_event_told_is_known_after_the_server_has_dropped_it(scripted):
    # Of a list without a version no watch keeps the events: they are asked for with each look.
    scripted.made.answers["GET", f"{OF_SPACE}/events"] = 200, {"items": [event("job-x", "the job", 2, "u1")]}
    for _ in range(2):
        assert scripted.described().msg == "FailedCreate: the job"
    wait_until(lambda: "pods" in scripted.watches, "the watch")
    scripted.made.answers["GET", f"{OF_SPACE}/events"] = 200, {"items": []}
    scripted.tell("pods", pod("job-x-worker-1-0", "u1"))
    wait_until(lambda: scripted.cost(), "a look")
    assert scripted.described().msg == "FailedCreate: the job"


def test_a_watch_that_fails_is_not_tried_again_at_once(scripted, monkeypatch):
    now = 1_800_000_000.0
    monkeypatch.setattr(following, "time", SimpleNamespace(time=lambda: now))
    refused: list[str] = []

    def refuse(asked):
        if "watch" in asked.params:
            refused.append(asked.path)
            return status(403, "Forbidden", "no watch")
        return 200, {"items": [], "metadata": {"resourceVersion": "7"}}

    scripted.made.answers["GET", f"{OF_SPACE}/pods"] = refuse
    assert [scripted.cost(), scripted.cost()] == [4, 0]
    wait_until(lambda: refused and scripted.cost(), "a look")
    # Without a watch it is read every few seconds, until another watch is tried.
    for _ in range(3):
        assert scripted.cost() == 0
        now += 2.0
        assert scripted.cost() == 0
        now += 2.0
        assert scripted.cost() == 4
    assert len(refused) == 1
    now += 31.0
    assert [scripted.cost(), scripted.cost()] == [4, 0]
    wait_until(lambda: len(refused) == 2, "another watch")
