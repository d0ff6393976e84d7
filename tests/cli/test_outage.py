"""wait, run --wait and log --tail while a backend is away, and logs of which a part is gone."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from support.canned import CannedScheduler
from support.scripted_server import scripted_server
from support.terminal import COMMAND
from support.volcano_jobs import make_job
from support.waiting import PATIENCE

from torchx_tui.backends.runner import Runner
from torchx_tui.backends.shared import changes
from torchx_tui.cli import jobs, logs
from torchx_tui.cli import run as launch
from torchx_tui.specs.errors import BackendUnavailableError, SchedulerError
from torchx_tui.specs.status import AppState

HANDLE = "local_cwd://torchx/x-1"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: me}}]
clusters: [{name: it, cluster: {server: "http://127.0.0.1:PORT"}}]
users: [{name: me, user: {token: x}}]
"""


class Remote(CannedScheduler):
    """A job of three replicas: its server is away every other time, and logs of some replicas are gone."""

    log_files: Any = None  # it has lines only

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.gone: Mapping[int, Exception] = {}
        self.add("x-1", AppState.SUCCEEDED, 60, replicas=3)

    def _away_at_first(self) -> None:
        self.asked += 1
        if self.asked % 2:
            raise BackendUnavailableError("nothing listens")

    def describe(self, app_id):
        self._away_at_first()
        return super().describe(app_id)

    def schedule(self, dryrun_info):
        return "x-1"

    def log_iter(self, app_id, role_name, k=0, regex=None, since=None, until=None, should_tail=False, streams=None):
        if should_tail:
            self._away_at_first()
        if k in self.gone:
            raise self.gone[k]
        return self._lines(k)

    def _lines(self, k: int) -> Iterator[str]:
        yield f"of {k}\n"
        if k + 10 in self.gone:
            raise self.gone[k + 10]


@pytest.fixture
def remote(monkeypatch):
    scheduler = Remote()

    def make_runner(settings: object) -> Runner:
        return Runner(schedulers={"local_cwd": scheduler})

    for module in (launch, jobs):
        monkeypatch.setattr(module, "make_runner", make_runner)
    monkeypatch.setattr(changes, "FIRST_RETRY_S", 0.01)
    return scheduler


def test_wait_survives_an_outage(command, remote):
    ended = command("wait", "--json", HANDLE)
    assert (ended.code, ended.data["state"]) == (0, "SUCCEEDED")
    assert ended.err == "torchx-tui: nothing listens; retrying until it answers\n"


def test_run_wait_survives_an_outage(command, remote):
    ended = command("run", "-s", "local_cwd", "--wait", "utils.echo")
    assert (ended.code, ended.out) == (0, f"{HANDLE}\n")
    assert {f"trainer/{k} of {k}" for k in (0, 1, 2)} < set(ended.err.splitlines())
    assert "cannot be read" not in ended.err


def test_log_tail_survives_an_outage(command, remote):
    ended = command("log", "--tail", f"{HANDLE}/trainer/1")
    assert (ended.code, ended.out) == (0, "trainer/1 of 1\n")
    assert ended.err == "torchx-tui: nothing listens; retrying until it answers\n"
    # What is there already is not worth a wait.
    assert command("log", HANDLE).code == 2


@pytest.mark.parametrize(
    ("flags", "line"),
    [([], "trainer/{0} of {0}"), (["--json"], '{{"role": "trainer", "replica": {0}, "line": "of {0}"}}')],
)
def test_log_of_some_replicas(command, remote, flags, line):
    remote.asked = 1
    remote.gone = {1: ValueError("the pod x-trainer-1 was deleted, and its log with it")}
    words = "trainer/1 cannot be read: ValueError: the pod x-trainer-1 was deleted, and its log with it"
    for tail in ([], ["--tail"]):
        ended = command("log", *flags, *tail, HANDLE)
        assert (ended.code, sorted(ended.out.splitlines())) == (0, [line.format(k) for k in (0, 2)])
        assert ended.err.endswith(f"torchx-tui: {words}\n")


def test_log_of_no_replica(command, remote):
    remote.asked = 1
    remote.gone = dict.fromkeys(range(3), SchedulerError("the pods are gone"))
    ended = command("log", HANDLE)
    assert (ended.code, ended.out, ended.err) == (2, "", "torchx-tui: the pods are gone\n")


def test_log_that_breaks_off(command, remote):
    remote.asked, remote.gone = 1, {10: SchedulerError("the node is gone")}
    ended = command("log", f"{HANDLE}/trainer/0")
    assert (ended.code, ended.out, "the node is gone" in ended.err) == (2, "trainer/0 of 0\n", True)
    remote.asked = 1
    ended = command("log", HANDLE)
    assert (ended.code, ended.err) == (0, "torchx-tui: trainer/0 cannot be read: the node is gone\n")


@pytest.mark.parametrize(("flags", "limit", "printed"), [([], "_MOST_READ", 40), (["--tail"], "_MOST_FOLLOWED", 6)])
def test_log_of_many_replicas_bounds_its_threads(command, remote, monkeypatch, flags, limit, printed):
    remote.asked = 1
    remote.add("x-1", AppState.SUCCEEDED, 60, replicas=40)
    monkeypatch.setattr(logs, limit, 6)
    monkeypatch.setattr(remote, "_away_at_first", lambda: None)
    names: list[str] = []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (names.append(thread.name), start(thread)))
    ended = command("log", *flags, HANDLE)
    assert (ended.code, len(ended.out.splitlines()), names.count("read-log")) == (0, printed, 6)
    assert ("following the first 6 of 40 replicas; choose others as" in ended.err) == bool(flags)


def test_wait_survives_a_refused_connection(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    (tmp_path / "kubeconfig").write_text(KUBECONFIG.replace("PORT", str(port)))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    argv = [COMMAND, "wait", "kubernetes://torchx/default:job-1"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stderr is not None
        said = waiting.stderr.readline()
        assert "refuses the connection" in said
        assert said.endswith("; retrying until it answers\n")
        with scripted_server(port) as server:
            job = make_job("job-1")
            job["metadata"] |= {"namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
            job["status"] = {"state": {"phase": "Completed", "lastTransitionTime": "2026-01-01T00:01:00Z"}}
            server.gives("/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/job-1", job)
            server.gives("/api/v1/namespaces/default/pods", {"items": [], "metadata": {}})
            assert waiting.wait(PATIENCE) == 0
