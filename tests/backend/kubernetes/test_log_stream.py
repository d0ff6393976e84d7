"""Logs of a scripted server: tails, cursors, restarts, and logs that cannot be read."""

from datetime import datetime, timezone

import pytest
from support.scripted_server import Stream, status
from support.volcano_jobs import make_job

from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler
from torchx_tui.backends.types import Stream as LogOutput
from torchx_tui.logs.source.stream import Part, PartsCursor, TimeCursor
from torchx_tui.specs.errors import BackendUnavailableError, JobNotFoundError, LogUnreadableError, SchedulerError

PODS = "/api/v1/namespaces/space/pods"
APP = "space:job-x"
LABELS = {
    "torchx.pytorch.org/role-name": "worker",
    "torchx.pytorch.org/replica-id": "0",
    "volcano.sh/task-spec": "worker-0",
}
RUNS, WAITS = {"running": {}}, {"waiting": {"reason": "CreateContainerError"}}
ONE = {"container": "worker-0", "timestamps": "true"}
SINCE = "2026-01-01T00:00:{:02}Z"


def exited(code=0):
    return {"terminated": {"exitCode": code}}


def printed(*lines):
    """Format lines of a log as a server does with their times."""
    return b"".join(f"2026-01-01T00:00:{second:02d}.5Z {text}\n".encode() for second, text in lines)


class Scripted:
    """A server that has one job, its pod, and the logs of the pod's containers and of their runs before."""

    def __init__(self, made):
        self.logs, self.previous, self.asked = {}, {}, []
        self.job, self.reads, self.before_read = make_job("job-x"), 0, lambda number: None
        self.has("Completed")
        made.answers["GET", "/apis/batch.volcano.sh/v1alpha1/namespaces/space/jobs/job-x"] = self.read_job
        made.answers["GET", PODS] = lambda asked: (200, {"items": self.pods})
        made.answers["GET", f"{PODS}/job-x-worker-0-0/log"] = self.read_log
        self.scheduler = KubernetesScheduler("test", made.client())

    def has(self, job_phase, *states, uid="u1", restarts=0, phase="", **spec):
        """Let the job be in a phase, and its containers in these states: worker-0, side-1, ..."""
        self.job["status"] = {"state": {"phase": job_phase}}
        names = ["worker-0", *(f"side-{k}" for k in range(1, len(states)))]
        own = [
            {"name": name, "state": state, "restartCount": restarts}
            for name, state in zip(names, states or [exited()], strict=True)
        ]
        named = {"containers": [{"name": name} for name in names], "nodeName": "n1", "restartPolicy": "Never"}
        metadata = {
            "name": "job-x-worker-0-0",
            "namespace": "space",
            "uid": uid,
            "labels": LABELS,
        }
        self.pods = [
            {"metadata": metadata, "spec": {**named, **spec}, "status": {"phase": phase, "containerStatuses": own}}
        ]

    def prints(self, *lines, container="worker-0"):
        self.logs[container] = printed(*lines)

    def runs(self):
        """Let the pod run; return what its log gives."""
        self.has("Running", RUNS, phase="Running")
        self.logs["worker-0"] = Stream()
        return self.logs["worker-0"]

    def read_job(self, asked):
        self.reads += 1
        self.before_read(self.reads)
        return 200, self.job

    def read_log(self, asked):
        self.asked.append(asked.params)
        found = (self.previous if "previous" in asked.params else self.logs).get(asked.params["container"], b"")
        return found if isinstance(found, tuple) else (200, found)

    def open(self, cursor=None, k=0, stream=LogOutput.COMBINED):
        self.asked.clear()
        return self.scheduler.log_stream(APP, "worker", k, stream, cursor)

    def read(self, **options):
        return [record.data.decode().rstrip("\n") for record in self.open(**options)]

    def lines(self, **options):
        self.asked.clear()
        return list(self.scheduler.log_iter(APP, "worker", 0, **options))


@pytest.fixture
def log(server):
    found = Scripted(server)
    yield found
    found.scheduler.close()


def moment(second, micros=0):
    return datetime(2026, 1, 1, 0, 0, second, micros, tzinfo=timezone.utc)


def test_ended_log_and_its_continuation(log):
    log.prints((1, "one"), (5, "two"))
    reading = log.open()
    records = list(reading)
    assert ([record.data for record in records], records[0].time) == ([b"one\n", b"two\n"], 1_767_225_601.5)
    assert log.asked == [ONE]
    log.prints((5, "two"), (5, "three"))
    assert log.read(cursor=reading.cursor) == ["three"]
    assert log.asked == [{**ONE, "sinceTime": SINCE.format(5)}]


def test_requests_of_a_part(log):
    log.prints((5, "two"), (5, "three"))
    assert log.lines(since=moment(5)) == ["two\n", "three\n"]
    assert log.asked == [{**ONE, "sinceTime": SINCE.format(5)}]
    assert log.lines(since=moment(5, 750_000)) == []


def test_running_pod_is_followed(log):
    stream = log.runs()
    reading = log.open()
    stream.put(printed((1, "one")))
    assert next(reading).data == b"one\n"
    assert log.asked == [{**ONE, "follow": "true"}]
    log.prints((1, "one"), (2, "two"))
    log.has("Running", exited(), phase="Succeeded")
    stream.end()
    assert [record.data for record in reading] == [b"two\n"]
    # The end of the log is read once after the end of the pod.
    assert log.asked[1:] == [{**ONE, "sinceTime": SINCE.format(1)}]
    # Without a tail it ends at the present end.
    log.has("Running", RUNS, phase="Running")
    assert log.lines() == ["one\n", "two\n"]
    assert log.asked == [ONE]


def test_close_while_following(log):
    stream = log.runs()
    stream.put(printed((1, "one")))
    reading = log.open()
    assert next(reading).data == b"one\n"
    for _ in range(2):
        reading.close()
        assert list(reading) == []
    stream.end()


def test_restarted_container(log):
    log.has("Completed", exited(), restarts=2)
    log.previous["worker-0"] = printed((1, "before"))
    log.prints((5, "now"))
    later = ["-- worker/0 was restarted (restart 2): its log continues --", "now"]
    assert log.read() == ["before", *later]
    assert log.asked == [{**ONE, "previous": "true"}, ONE]
    assert log.lines() == ["before\n", "now\n"]
    # A cursor within the run before continues there.
    reading = log.open()
    assert next(reading).data == b"before\n"
    reading.close()
    assert log.read(cursor=reading.cursor) == later


def test_lines_that_a_node_has_dropped(log):
    log.prints((9, "new"))
    before = 1_767_225_605 * 10**9
    seen = Part("u1/worker-0/0", TimeCursor(before, 7), before + 5)
    lost = "-- worker/0 lost lines here: its node had dropped them before they were read --"
    assert log.read(cursor=PartsCursor((seen,))) == [lost, "new"]


def test_init_containers_come_first_and_sidecars_are_left_out(log):
    first = [{"name": "first"}, {"name": "beside", "restartPolicy": "Always"}]
    log.has("Completed", exited(), exited(), initContainers=first)
    log.pods[0]["status"]["initContainerStatuses"] = [{"name": one["name"], "state": exited()} for one in first]
    for name in ("worker-0", "side-1", "first", "beside"):
        log.prints((1, f"of {name}"), (2, "more"), container=name)
    lines = ["first of first", "first more", "of worker-0", "more"]
    assert log.lines() == [f"{line}\n" for line in lines]
    assert "\n".join(log.read()).splitlines() == lines


UNREADABLE = "-- worker/0 has a log that cannot be read: {} --"


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (status(400, "BadRequest", 'container "worker-0" is waiting to start: ContainerCreating'), []),
        (status(404, "NotFound", "no such pod"), []),
        (status(400, "BadRequest", "the log is\x1b[2J away"), [UNREADABLE.format("the log is away")]),
        ((200, b"unable to retrieve container logs for containerd://1\n"),
         [UNREADABLE.format("unable to retrieve container logs for containerd://1")]),
    ],
)  # fmt: skip
def test_log_that_is_not_given(log, answer, lines):
    log.logs["worker-0"] = answer
    assert log.read() == lines


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (status(500, "InternalError", "Get https://n1:10250/containerLogs/space/p/c: refused"), BackendUnavailableError,
         "^the node n1 of worker/0 does not give its log: is the node, and its kubelet, running"),
        (status(500, "InternalError", "etcd"), BackendUnavailableError, "cannot answer now"),
        (status(403, "Forbidden", "no logs"), SchedulerError, "^no logs$"),
    ],
)  # fmt: skip
def test_log_that_is_refused(log, answer, error, words):
    log.logs["worker-0"] = answer
    with pytest.raises(error, match=words):
        log.read()


def test_missing_job_pod_and_stream(log):
    log.pods = []
    with pytest.raises(LogUnreadableError, match=rf"^the pod of worker/0 of {APP} was deleted"):
        log.read()
    with pytest.raises(ValueError, match="worker"):
        log.read(k=7)
    with pytest.raises(JobNotFoundError):
        log.scheduler.log_stream("space:job-y", "worker", 0, LogOutput.COMBINED)
    for output in (LogOutput.STDOUT, LogOutput.STDERR):
        with pytest.raises(ValueError, match=f"keeps no stream {output.value} of its own. Valid: combined"):
            log.open(stream=output)


@pytest.mark.parametrize("lines", [["-- worker/0 waits: its container cannot be created --"], []])
def test_waiting_container_says_why_once(log, lines):
    log.has("Running", WAITS, phase="Pending")
    if not lines:
        # Its node has not seen it yet.
        log.pods[0]["status"]["containerStatuses"] = []

    def end(number):
        if number == 6:
            log.has("Completed", exited(), phase="Succeeded")
            log.prints((1, "one"))

    log.before_read = end
    assert log.read() == [*lines, "one"]


def test_new_pod_continues_the_log(log):
    log.has("Running", exited(1), phase="Failed")
    log.job["spec"]["policies"] = [{"event": "PodFailed", "action": "RestartJob"}]
    log.prints((1, "one"))

    def restart(number):
        if number in (3, 4):
            log.has("Running" if number == 3 else "Completed", uid="u2", phase="Succeeded")
            log.prints((9, "two"))

    log.before_read = restart
    again = "-- worker/0 was restarted in a new pod: its log continues --"
    assert log.read() == ["one", again, "two"]
