"""Logs that are followed while the way to the server is cut, and while its node rotates them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.api_proxy import api_proxy
from support.cut_proxy import cut_proxy
from support.kubernetes_cluster import new_namespace
from support.scripted_server import Stream, scripted_server, status
from support.volcano_jobs import make_job
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.kubernetes.beside import run_beside
from torchx_tui.backends.kubernetes.logs.log_stream import open_stream, read_lines
from torchx_tui.backends.types import LogQuery
from torchx_tui.backends.types import Stream as LogOutput
from torchx_tui.logs.source.stream import Part, PartsCursor, TimeCursor
from torchx_tui.specs import BackendUnavailableError, JobNotFoundError, LogUnreadableError, SchedulerError

from .support import job_on

# Numbered lines, some hundreds a second, until a file is there.
FLOOD = """
import itertools, os, time
for number in itertools.count():
    print("line", number, flush=True)
    if number % 10 == 0:
        time.sleep(0.02)
        if os.path.exists("/end"):
            break
"""


@pytest.fixture
def proxy(kubernetes_cluster, tmp_path, monkeypatch):
    """A way to the server that can be cut; KUBECONFIG leads through it."""
    address = urlsplit(kubernetes_cluster.host)
    assert address.hostname
    assert address.port
    with cut_proxy(address.hostname, address.port) as made:
        config = json.loads(Path(kubernetes_cluster.kubeconfig).read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://{address.hostname}:{made.port}"
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", str(path))
        yield made


@pytest.fixture
def job(proxy, kubernetes_cluster):
    with job_on(kubernetes_cluster) as made:
        yield made


def kept(job):
    return b"".join(record.data for record in open_stream(job.server, job.app_id, "worker"))


@pytest.mark.slow
def test_no_line_is_lost_or_doubled_when_the_way_is_cut(job, proxy):
    job.python(FLOOD)
    follower = job.follow()
    for round_number in range(3):
        begun = follower.size
        wait_until(lambda begun=begun: follower.size > begun + 20_000, f"lines in round {round_number}")
        cuts = len(follower.cuts)
        proxy.cut()
        wait_until(lambda cuts=cuts: len(follower.cuts) > cuts, "the cut")
        proxy.mend()
    run_beside(job.server, job.app_id, "worker", 0, ["touch", "/end"], PATIENCE)
    follower.join()
    data = follower.data
    assert data == b"".join(b"line %d\n" % number for number in range(data.count(b"\n")))
    assert data == kept(job)
    assert "API server" in follower.cuts[0]


@pytest.mark.slow
def test_lines_go_on_when_the_server_is_back(job, proxy):
    """An iterator of lines takes its log up by itself."""
    job.start("for i in 1 2 3 4 5 6 7 8 9; do echo line $i; sleep 0.5; done")
    got: list[str] = []
    for line in read_lines(job.server, LogQuery.parse(job.app_id, "worker", should_tail=True)):
        got.append(line)
        if len(got) in (2, 5):
            proxy.cut()
            proxy.mend()
    assert got == [f"line {number}\n" for number in range(1, 10)]


@pytest.mark.slow
def test_no_line_is_lost_or_doubled_when_a_node_and_a_server_are_killed(own_cluster):
    own_cluster.start(node=True)
    with new_namespace(own_cluster.kubeconfig) as cluster, job_on(cluster) as job:
        job.python(FLOOD)
        follower = job.follow()
        for program in ("kubelet", "kube-apiserver"):
            begun = follower.size
            wait_until(lambda begun=begun: follower.size > begun + 20_000, f"lines before {program} is killed")
            cuts = len(follower.cuts)
            own_cluster.kill(program)
            wait_until(lambda cuts=cuts: len(follower.cuts) > cuts, f"the cut when {program} is killed")
            own_cluster.start()
        begun = follower.size
        wait_until(lambda: follower.size > begun + 20_000, "lines after all")
        follower.close()
        follower.join()
    data = follower.data
    assert data == b"".join(b"line %d\n" % number for number in range(data.count(b"\n")))
    assert any("the node localhost of worker/0 does not give its log" in cut for cut in follower.cuts)


def test_a_server_that_is_away_is_said_in_words(job, proxy):
    job.start("echo one; sleep 600")
    reading = open_stream(job.server, job.app_id, "worker")
    assert next(reading).data == b"one\n"
    proxy.cut()
    with pytest.raises(BackendUnavailableError, match="closed the connection"):
        next(reading)
    with pytest.raises(BackendUnavailableError):
        next(open_stream(job.server, job.app_id, "worker", cursor=reading.cursor))


def test_closing_64_streams_ends_their_connections_at_once(job, proxy):
    job.start("echo one; sleep 600")
    job.wait_until_running()
    followers = [job.follow() for _ in range(64)]
    wait_until(lambda: all(follower.data == b"one\n" for follower in followers), "the line in all of them")
    # One each, beside the few that are for questions.
    assert 64 <= proxy.count <= 64 + 8
    for follower in followers:
        follower.close()
    wait_until(lambda: proxy.count <= 8, "the connections end", PATIENCE)
    for follower in followers:
        follower.join()


def test_a_followed_replica_costs_one_request(kubernetes_cluster, tmp_path, monkeypatch):
    with api_proxy(kubernetes_cluster, tmp_path) as counting:
        monkeypatch.setenv("KUBECONFIG", str(counting.kubeconfig))
        with job_on(kubernetes_cluster) as job:
            job.start("echo one; sleep 600", replicas=4)
            job.wait_until_running()
            followers = [job.follow(k) for k in range(4) for _ in range(4)]
            wait_until(lambda: all(follower.data == b"one\n" for follower in followers), "the line in all of them")
            assert len(counting.requests(lambda asked: asked.is_followed)) == 16
            # The job and its pods, which all of them share.
            others = counting.requests(lambda asked: not asked.is_followed)
            assert len(others) <= 2 * 3
            # While they are followed nothing is asked.
            counting.forget()
            time.sleep(2)
            assert not counting.requests()
            for follower in followers:
                follower.close()
                follower.join()


@pytest.mark.slow
def test_a_real_rotation_doubles_no_line(job):
    script = "for number in range(100_000): print('x' * 180, number, flush=True)"
    job.python(script)
    follower = job.follow()
    follower.join()
    lines = follower.data.splitlines()
    assert not follower.cuts
    # What an old node drops in the midst of an answer, nobody can know: some lines are cut off or run together there.
    found = [re.fullmatch(rb"x{180} (\d{1,5})", line) for line in lines]
    # The line before such a place may have half a number.
    numbers = [int(match[1]) for match, after in zip(found, [*found[1:], True], strict=True) if match and after]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == 99_999
    assert found.count(None) < len(found) / 100


# Where a server answers as it is told to

JOB_X = "/apis/batch.volcano.sh/v1alpha1/namespaces/space/jobs/job-x"
PODS = "/api/v1/namespaces/space/pods"
LOG = f"{PODS}/job-x-worker-0-0/log"
ENDED, RUNS, WAITS = {"terminated": {"exitCode": 0}}, {"running": {}}, {"waiting": {"reason": "CreateContainerError"}}


class Kept:
    """A server that keeps one job, its pod, and the logs of its containers, each by the number of its run."""

    def __init__(self, made):
        self.job = make_job("job-x")
        self.phase("Completed")
        self.pods = [self.pod(ENDED)]
        self.logs: dict[tuple[str, bool], Any] = {}
        self.asked: list[dict[str, str]] = []
        self.looks = 0
        self.before_look: Callable[[], None] = lambda: None
        made.answers["GET", JOB_X] = lambda asked: self._look() or (200, self.job)
        made.answers["GET", PODS] = lambda asked: (200, {"items": self.pods})
        made.answers["GET", LOG] = self._log
        self.server = made.api()

    def pod(self, *states, uid="u1", restarts=0, phase="", **spec):
        names = ["worker-0", *(f"side-{k}" for k in range(1, len(states)))]
        statuses = [
            {"name": name, "state": state, "restartCount": restarts} for name, state in zip(names, states, strict=True)
        ]
        spec = {"containers": [{"name": name} for name in names], "nodeName": "n1", "restartPolicy": "Never", **spec}
        metadata = {"name": "job-x-worker-0-0", "namespace": "space", "uid": uid}
        return {"metadata": metadata, "spec": spec, "status": {"phase": phase, "containerStatuses": statuses}}

    def phase(self, phase):
        self.job["status"] = {"state": {"phase": phase}}

    def _look(self):
        self.looks += 1
        self.before_look()

    def _log(self, asked):
        self.asked.append(asked.params)
        found = self.logs.get((asked.params["container"], "previous" in asked.params))
        return (200, found) if isinstance(found, (bytes, Stream)) else found or (200, b"")

    def read(self, **options):
        self.asked.clear()
        reading = open_stream(self.server, "space:job-x", "worker", **options)
        return [record.data.decode().rstrip("\n") for record in reading]

    def lines(self, **options):
        self.asked.clear()
        return list(read_lines(self.server, LogQuery.parse("space:job-x", "worker", 0, **options)))


def printed(*lines):
    return b"".join(f"2026-01-01T00:00:{second:02d}.5Z {text}\n".encode() for second, text in lines)


@pytest.fixture
def log():
    with scripted_server() as made:
        found = Kept(made)
        yield found
        found.server.close()


ONE = {"container": "worker-0", "timestamps": "true"}


def test_a_log_is_asked_for_and_taken_up(log):
    log.logs["worker-0", False] = printed((1, "one"), (5, "two"))
    reading = open_stream(log.server, "space:job-x", "worker")
    records = list(reading)
    assert b"".join(record.data for record in records) == b"one\ntwo\n"
    assert records[0].time == 1_767_225_601.5
    assert log.asked == [ONE]
    assert reading.cursor is not None
    log.logs["worker-0", False] = printed((5, "two"), (5, "three"))
    again = open_stream(log.server, "space:job-x", "worker", cursor=reading.cursor, tail=3)
    assert [record.data for record in again] == [b"three\n"]
    assert log.asked[-1] == {**ONE, "sinceTime": "2026-01-01T00:00:05Z"}
    assert log.lines(since=datetime(2026, 1, 1, 0, 0, 5, tzinfo=timezone.utc)) == ["two\n", "three\n"]
    assert log.asked == [{**ONE, "sinceTime": "2026-01-01T00:00:05Z"}]
    assert log.lines(since=datetime(2026, 1, 1, 0, 0, 5, 750_000, tzinfo=timezone.utc)) == []
    open_stream(log.server, "space:job-x", "worker", tail=0).__next__()
    assert log.asked[-1] == {**ONE, "tailLines": "0"}


def test_a_pod_that_runs_is_followed(log):
    log.phase("Running")
    log.pods = [log.pod(RUNS, phase="Running")]
    going = log.logs["worker-0", False] = Stream()
    reading = open_stream(log.server, "space:job-x", "worker")
    going.put(printed((1, "one")))
    assert next(reading).data == b"one\n"
    assert log.asked == [{**ONE, "follow": "true"}]
    log.logs["worker-0", False] = printed((1, "one"), (2, "two"))
    log.pods = [log.pod(ENDED, phase="Succeeded")]
    going.end()
    assert [record.data for record in reading] == [b"two\n"]
    # What it printed last is asked for once more when it has ended, and no more.
    assert log.asked[1:] == [{**ONE, "sinceTime": "2026-01-01T00:00:01Z"}]
    # Without a tail it ends at the present end.
    log.pods = [log.pod(RUNS, phase="Running")]
    assert log.lines() == ["one\n", "two\n"]
    assert log.asked == [ONE]


def test_a_log_that_is_closed_while_it_is_waited_for(log):
    log.phase("Running")
    log.pods = [log.pod(RUNS, phase="Running")]
    going = log.logs["worker-0", False] = Stream()
    going.put(printed((1, "one")))
    reading = open_stream(log.server, "space:job-x", "worker")
    assert next(reading).data == b"one\n"
    reading.close()
    assert list(reading) == []
    reading.close()
    going.end()


def test_a_container_that_was_started_again(log):
    log.pods = [log.pod(ENDED, restarts=2)]
    log.logs["worker-0", True] = printed((1, "before"))
    log.logs["worker-0", False] = printed((5, "now"))
    assert log.read() == ["before", "-- worker/0 was restarted (restart 2): its log continues --", "now"]
    assert log.asked == [{**ONE, "previous": "true"}, ONE]
    # Of the last lines only: the run before is not asked for.
    later = ["-- worker/0 was restarted (restart 2): its log continues --", "now"]
    assert log.read(tail=5) == later
    assert log.lines() == ["before\n", "now\n"]
    # Who stopped within the run before goes on in it.
    reading = open_stream(log.server, "space:job-x", "worker")
    assert next(reading).data == b"before\n"
    reading.close()
    assert log.read(cursor=reading.cursor) == later


def test_lines_that_the_node_has_dropped_are_said_to_be_lost(log):
    log.logs["worker-0", False] = printed((9, "new"))
    before = 1_767_225_605 * 10**9
    seen = Part("u1/worker-0/0", TimeCursor(before, 7), before + 5)
    lost = "-- worker/0 lost lines here: its node had dropped them before they were read --"
    assert log.read(cursor=PartsCursor((seen,))) == [lost, "new"]


def test_all_containers_of_a_pod_are_read(log):
    first = [{"name": "first"}, {"name": "beside", "restartPolicy": "Always"}]
    log.pods = [log.pod(ENDED, ENDED, initContainers=first)]
    log.pods[0]["status"]["initContainerStatuses"] = [{"name": one["name"], "state": ENDED} for one in first]
    for name in ("worker-0", "side-1", "first", "beside"):
        log.logs[name, False] = printed((1, f"of {name}"), (2, "more"))
    assert log.lines() == [
        *("first of first\n", "first more\n", "of worker-0\n", "more\n"),
        *("side-1 of side-1\n", "side-1 more\n", "beside of beside\n", "beside more\n"),
    ]
    # Followed, those that run at a time come as they come, the one that prepares them first.
    followed = "\n".join(log.read()).splitlines()
    assert (followed[:2], sorted(followed)) == (["first of first", "first more"], sorted(map(str.strip, log.lines())))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (status(400, "BadRequest", 'container "worker-0" is waiting to start: ContainerCreating'), []),
        (status(404, "NotFound", "no such pod"), []),
        (status(400, "BadRequest", "the log is\x1b[2J away"),
         ["-- worker/0 has a log that cannot be read: the log is away --"]),
        ((200, b"unable to retrieve container logs for containerd://1\n"),
         ["-- worker/0 has a log that cannot be read: unable to retrieve container logs for containerd://1 --"]),
    ],
)  # fmt: skip
def test_a_log_that_is_not_given(log, answer, said):
    log.logs["worker-0", False] = answer
    assert log.read() == said


def test_a_node_that_does_not_answer(log):
    log.logs["worker-0", False] = status(500, "InternalError", "Get https://n1:10250/containerLogs/space/p/c: refused")
    words = "^the node n1 of worker/0 does not give its log: is the node, and its kubelet, running"
    with pytest.raises(BackendUnavailableError, match=words):
        log.read()
    log.logs["worker-0", False] = status(500, "InternalError", "etcd")
    with pytest.raises(BackendUnavailableError, match="cannot answer now"):
        log.read()
    log.logs["worker-0", False] = status(403, "Forbidden", "no logs")
    with pytest.raises(SchedulerError, match=r"^no logs$"):
        log.read()


def test_a_pod_that_is_gone_has_taken_its_log_along(log):
    log.pods = []
    with pytest.raises(LogUnreadableError, match=r"^the pod of worker/0 of space:job-x was deleted"):
        log.read()
    with pytest.raises(ValueError, match="worker"):
        log.read(k=7)
    with pytest.raises(JobNotFoundError):
        list(open_stream(log.server, "space:job-y", "worker"))
    for output in (LogOutput.STDOUT, LogOutput.STDERR):
        with pytest.raises(ValueError, match=f"keeps no stream {output.value} of its own. Valid: combined"):
            open_stream(log.server, "space:job-x", "worker", streams=output)


@pytest.mark.parametrize("said", [["-- worker/0 waits: its container cannot be created --"], []])
def test_why_a_container_does_not_run_is_said_once(log, said):
    log.phase("Running")
    log.pods = [log.pod(WAITS, phase="Pending")]
    if not said:
        # Its node has not looked at it yet.
        log.pods[0]["status"]["containerStatuses"] = []

    def look():
        if log.looks == 6:
            log.pods = [log.pod(ENDED, phase="Succeeded")]
            log.logs["worker-0", False] = printed((1, "one"))
            log.phase("Completed")

    log.before_look = look
    assert log.read() == [*said, "one"]


def test_a_pod_that_is_made_anew_goes_on_in_the_same_log(log):
    log.phase("Running")
    log.job["spec"]["policies"] = [{"event": "PodFailed", "action": "RestartJob"}]
    log.pods = [log.pod({"terminated": {"exitCode": 1}}, phase="Failed")]
    log.logs["worker-0", False] = printed((1, "one"))

    def look():
        if log.looks == 3:
            log.pods = [log.pod(ENDED, phase="Succeeded", uid="u2")]
            log.pods[0]["metadata"]["annotations"] = {"volcano.sh/job-retry-count": "2"}
            log.logs["worker-0", False] = printed((9, "two"))
        if log.looks == 4:
            log.phase("Completed")

    log.before_look = look
    again = "-- worker/0 was restarted in a new pod (retry 2): its log continues --"
    assert log.read() == ["one", again, "two"]
