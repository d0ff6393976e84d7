"""What a command line, stdin, config and signals make of a launch, on a scheduler with canned answers."""

from __future__ import annotations

import ast
import io
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.canned import CannedScheduler
from support.command import Command
from support.component_files import ComponentFile
from support.shell import launches
from support.terminal import COMMAND
from support.waiting import PATIENCE

from torchx_tui.backends.scheduler_pool import SchedulerPool
from torchx_tui.backends.types import BY_TORCHX, Finding
from torchx_tui.backends.workspace import WorkspaceMixin
from torchx_tui.specs import AppState, RoleStatus, SchedulerError

HERE = ("-s", "local_cwd")
HANDLE = "local_cwd://torchx/job-1"
COMPONENT = '''
def job(count: int = 1, fast: bool = False, names: list[str] = ["a"], rate: float = 0.5, text: str = "") -> AppDef:
    """Do a job."""
    words = [f"{count} {fast} {names} {rate} {text}"]
    return AppDef("job", roles=[Role("r", image="", entrypoint="echo", args=words)])


def words(first: str = "", *rest: str) -> AppDef:
    """Do a job."""
    return AppDef("job", roles=[Role("r", image="", entrypoint="echo", args=[first, *rest])])
'''


class Launching(WorkspaceMixin[Any], CannedScheduler):
    """Runs what is launched, in name."""

    def build_workspace_and_update_role(self, role: Any, workspace: str, cfg: Any) -> None:
        """Leave the image as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.interrupts: list[int] = []
        self.state = AppState.SUCCEEDED

    def schedule(self, dryrun_info: Any) -> str:
        self.add("job-1", self.state, 1)
        return "job-1"

    def log_iter(self, *_: Any, **__: Any) -> Any:
        for number in self.interrupts:
            os.kill(os.getpid(), number)
        return iter(["a line\n"])

    def preflight(self, app: Any, cfg: Any) -> list[Finding]:
        return [Finding("ok", "all is well"), Finding("warning", "it is late", "sleep"), Finding("error", "no")]


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Launching:
    made = Launching()
    before = SchedulerPool.get
    monkeypatch.setattr(SchedulerPool, "get", lambda self, name: made if name == "local_cwd" else before(self, name))
    return made


@pytest.fixture(autouse=True)
def file(tmp_path: Path) -> None:
    ComponentFile(tmp_path / "jobs.py").write(COMPONENT)


def args_of(command: Command, *words: str) -> list[str]:
    ended = command("dryrun", *HERE, "--json", *words)
    assert ended.code == 0, ended.err
    return ended.data["app"]["roles"][0]["args"]


def from_stdin(command: Command, monkeypatch: pytest.MonkeyPatch, **data: Any) -> list[str]:
    given = {"scheduler": "local_cwd", "component_name": "jobs.py:job", **data}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(given)))
    ended = command("dryrun", "--stdin", "--json")
    assert ended.code == 0, ended.err
    return ended.data["app"]["roles"][0]["args"]


def test_values_on_stdin_have_their_kinds(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"count": 3, "fast": True, "names": ["b", "c"], "rate": 0.25, "text": "True"}
    assert from_stdin(command, monkeypatch, component_args=given) == ["3 True ['b', 'c'] 0.25 True"]
    given = {"fast": False, "text": "Upper", "count": None}
    assert from_stdin(command, monkeypatch, component_args=given) == ["1 False ['a'] 0.5 Upper"]
    assert from_stdin(command, monkeypatch, component_args_str=["--count", 7]) == ["7 False ['a'] 0.5 "]


def test_flags_stand_anywhere_before_a_components_own_words(command: Command) -> None:
    assert args_of(command, "jobs.py:words", "--first=-x", "--", "--json", "x") == ["-x", "--json", "x"]
    assert args_of(command, "jobs.py:words", "--first=a", "b", "--json") == ["a", "b", "--json"]
    assert args_of(command, "jobs.py:words", "--json", "--first", "a") == ["a"]
    ended = command("dryrun", "jobs.py:job", "--count", "2", "-s", "local_cwd", "--json", "--text=-s")
    assert ended.data["app"]["roles"][0]["args"] == ["2 False ['a'] 0.5 -s"]
    # An abbreviation of a flag is none.
    assert command("dryrun", *HERE, "jobs.py:job", "--js").code == 2


def test_what_config_gave_is_kept_with_the_launch(command: Command, scheduler: Launching, tmp_path: Path) -> None:
    (tmp_path / ".torchxconfig").write_text(
        f"[cli:run]\nscheduler = local_cwd\nworkspace = {tmp_path}\n"
        "[local_cwd]\nlog_dir = /logs\n[component:jobs.py:job]\ncount = 5\ntext = x\n"
    )
    assert command("run", "jobs.py:job", "--text", "mine", "--detach").code == 0
    (path,) = launches()
    record = json.loads(path.read_text())
    assert record["config"] == {
        "scheduler": "local_cwd",
        "workspace": str(tmp_path),
        "log_dir": "/logs",
        "component.count": "5",
    }
    assert (record["workspace"], record["arguments"]) == (str(tmp_path), {"count": "5", "text": "mine"})


def test_findings_are_said_with_what_to_do(command: Command, scheduler: Launching) -> None:
    said = command("dryrun", *HERE, "jobs.py:job").err.splitlines()
    assert said == ["torchx-tui: warning: it is late (sleep)", "torchx-tui: error: no"]


@pytest.mark.parametrize(("state", "code"), [(AppState.SUCCEEDED, 0), (AppState.FAILED, 1), (AppState.CANCELLED, 1)])
def test_a_launch_that_is_waited_for_ends_as_its_job(
    command: Command, scheduler: Launching, state: AppState, code: int
) -> None:
    scheduler.state = state
    ended = command("run", *HERE, "--json", "jobs.py:job")
    assert (ended.code, ended.data["state"]) == (code, state.name)
    assert "trainer/0 a line\n" in ended.err
    assert (f"State: {state.name}" in ended.err) == bool(code)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_job_that_is_waited_for(
    command: Command, scheduler: Launching, number: int, code: int
) -> None:
    scheduler.state, scheduler.interrupts = AppState.RUNNING, [number]
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    try:
        ended = command("run", *HERE, "--json", "jobs.py:job")
    finally:
        for one, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
            signal.signal(one, handler)
    assert (ended.code, ended.data["state"]) == (code, "CANCELLED")
    assert scheduler.cancelled == ["job-1"]
    assert f"torchx-tui: cancelled {HANDLE}\n" in ended.err


def test_logs_of_torchx_stay_where_a_job_is_deleted(command: Command, scheduler: Launching) -> None:
    scheduler.add("job-1", AppState.SUCCEEDED, 60)
    scheduler.described["job-1"].notes = [BY_TORCHX]
    scheduler.described["job-1"].log_dir = "/logs/job-1"
    said = command("delete", HANDLE).err
    assert said == f"torchx-tui: {HANDLE} is no longer shown; its logs are TorchX's and stay in /logs/job-1\n"
    scheduler.add("job-1", AppState.SUCCEEDED, 60)
    assert command("delete", HANDLE).err == ""


@pytest.mark.parametrize("stream", ["stdout", "stderr", "combined"])
def test_each_stream_can_be_asked_for(command: Command, scheduler: Launching, stream: str) -> None:
    scheduler.add("job-1", AppState.SUCCEEDED, 60)
    ended = command("log", "--streams", stream, HANDLE)
    assert (ended.code, ended.out) == (0, "trainer/0 a line\n")
    assert command("log", "--streams", "both", HANDLE).code == 2


# Completion


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("runopts local_c", "local_cwd"),
        ("configure --schedulers local_c", "local_cwd"),
        ("list --scheduler local_c", "local_cwd"),
        ("builtins --print utils.ec", "utils.echo"),
        ("run utils.ec", "utils.echo"),
        ("run -- utils.ec", "utils.echo"),
    ],
)
def test_values_are_completed(tmp_path: Path, line: str, word: str) -> None:
    answer = tmp_path / "answer"
    answer.touch()
    whole = f"torchx-tui {line}"
    environ = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": whole,
        "COMP_POINT": str(len(whole)),
        "COMP_TYPE": "9",
    }
    subprocess.run([COMMAND], env=environ, cwd=tmp_path, capture_output=True, timeout=PATIENCE, check=False)
    assert answer.read_text().strip() == word


# What is seldom


def test_a_signal_before_there_is_a_job_ends_the_launch(
    command: Command, scheduler: Launching, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Any) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(scheduler, "schedule", interrupted)
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    try:
        ended = command("run", *HERE, "--json", "jobs.py:job")
    finally:
        for one, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
            signal.signal(one, handler)
    assert (ended.code, ended.out, scheduler.cancelled) == (130, "", [])


@pytest.mark.parametrize("error", [SchedulerError("no logs"), ValueError("no logs"), OSError("no logs")])
def test_a_job_whose_logs_cannot_be_read_is_waited_for_all_the_same(
    command: Command, scheduler: Launching, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def unreadable(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(scheduler, "log_iter", unreadable)
    ended = command("run", *HERE, "--json", "jobs.py:job")
    assert (ended.code, ended.data["state"]) == (0, "SUCCEEDED")
    assert "torchx-tui: the logs cannot be read: no logs; still waiting for the job's end\n" in ended.err


@pytest.mark.parametrize("flag", ["wait", "log"])
def test_fields_on_stdin_are_as_good_as_flags(
    command: Command, scheduler: Launching, monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    """A job elsewhere is waited for only where that is asked for."""
    monkeypatch.setattr(SchedulerPool, "get", lambda self, name: scheduler)
    for asked, lines in ((True, 1), (False, 0)):
        data = {"component_name": "jobs.py:job", "scheduler": "kubernetes", flag: asked}
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(data)))
        scheduler.state = AppState.FAILED
        ended = command("run", "--stdin", "--json")
        assert ended.code == (1 if asked else 0), ended.err
        assert ended.err.count("trainer/0 a line") == (lines if flag == "log" else 0)


def test_what_a_job_was_launched_as_is_described(command: Command, scheduler: Launching) -> None:
    scheduler.add("job-1", AppState.RUNNING, 60)
    scheduler.described["job-1"].metadata = {"team": "z"}
    text = command("describe", HANDLE).out
    told = ast.literal_eval(text.replace("<RetryPolicy.APPLICATION: 'APPLICATION'>", "None"))
    assert list(told) == ["name", "roles", "metadata"]
    assert (told["name"], told["metadata"], told["roles"][0]["name"]) == ("job", {"team": "z"}, "trainer")
    scheduler.described["job-1"].name = ""
    assert command("describe", HANDLE).out.startswith("{ 'name': 'job-1',")


def test_roles_that_there_are_stand_in_a_list(command: Command, scheduler: Launching) -> None:
    scheduler.add("job-1", AppState.RUNNING, 60)
    scheduler.described["job-1"].roles_statuses.append(RoleStatus("reader", []))
    assert "its roles are trainer, reader" in command("status", "--roles", "x", HANDLE).err


def test_the_usual_scheduler_may_be_named_beside_an_object_on_stdin(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".torchxconfig").write_text("[cli:run]\nscheduler = local_cwd\n")

    def ended_with(*words: str) -> int:
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"component_name": "jobs.py:job"})))
        return command("dryrun", "--stdin", *words).code

    assert ended_with("-s", "local_cwd") == 0
    assert ended_with("-s", "local_docker") == 2
    assert ended_with("-s", "local_cwd", "--ignore-config") == 2
