"""run on a scheduler with canned answers: exit codes, signals, notifications and completion."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from support.completion import completed

from torchx_tui.backends.scheduler_pool import SchedulerPool
from torchx_tui.cli.commands import flag_names
from torchx_tui.cli.follow import Interrupted, end_or_leave, interruptible
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.status import AppState

HANDLE = "local_cwd://torchx/job-1"
RUN = ("run", "-s", "local_cwd", "--json", "utils.echo")
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Jobs:
    """A runner that keeps what it is asked to cancel."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def end_own_jobs(self) -> None:
        self.ended.append("own")

    def job(self, handle: str) -> Any:
        return SimpleNamespace(cancel=lambda: self.ended.append(handle))


@pytest.fixture
def handlers():
    """Restore the handlers of signals."""
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize(("state", "code"), [(AppState.SUCCEEDED, 0), (AppState.FAILED, 1), (AppState.CANCELLED, 1)])
def test_run_ends_as_its_job(command, scheduler, state, code):
    scheduler.state = state
    ended = command(*RUN)
    assert (ended.code, ended.data["state"]) == (code, state.name)
    assert "trainer/0 a line\n" in ended.err
    assert (f"State: {state.name}" in ended.err) == bool(code)


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_cancels_the_job(command, scheduler, handlers, number):
    scheduler.state, scheduler.interrupts = AppState.RUNNING, [int(number)]
    ended = command(*RUN)
    assert (ended.code, ended.data["state"], scheduler.cancelled) == (128 + number, "CANCELLED", ["job-1"])
    assert f"torchx-tui: cancelled {HANDLE}\n" in ended.err


def test_interrupt_before_there_is_a_job(command, scheduler, monkeypatch, handlers):
    def interrupted(_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(scheduler, "schedule", interrupted)
    ended = command(*RUN)
    assert (ended.code, ended.out, scheduler.cancelled) == (130, "", [])


@pytest.mark.parametrize(
    ("handle", "ends", "cancelled", "words"),
    [
        (HANDLE, True, ["own", HANDLE], f"torchx-tui: cancelled {HANDLE}\n"),
        (HANDLE, False, [], f"torchx-tui: {HANDLE} continues; `torchx-tui cancel {HANDLE}` ends it\n"),
        ("", True, ["own"], ""),
        ("", False, [], ""),
    ],
)
def test_interrupted_launch(capsys, handlers, handle, ends, cancelled, words):
    jobs: Any = Jobs()
    assert end_or_leave(jobs, handle, Interrupted(signal.SIGTERM), ends=ends) == 143
    assert (jobs.ended, capsys.readouterr().err) == (cancelled, words)
    # A second signal ends the process.
    assert [signal.getsignal(number) for number in SIGNALS] == [signal.SIG_DFL] * 2


def test_signals_interrupt_within_the_context_only(handlers):
    before = [signal.getsignal(number) for number in SIGNALS]
    for number in SIGNALS:
        with pytest.raises(Interrupted, match=number.name) as raised, interruptible():
            os.kill(os.getpid(), number)
        assert raised.value.number == number
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_detached_launch(command, scheduler, monkeypatch):
    schedule = scheduler.schedule

    def with_url(info: Any) -> str:
        app_id = schedule(info)
        scheduler.described[app_id].ui_url = "https://x"
        return app_id

    monkeypatch.setattr(scheduler, "schedule", with_url)
    ended = command(*RUN, "--detach")
    assert (ended.code, ended.data) == (
        0,
        {"handle": HANDLE, "app_id": "job-1", "scheduler": "local_cwd", "state": "SUCCEEDED", "ui_url": "https://x"},
    )
    assert scheduler.detached == ["job-1"]
    assert command("run", "-s", "local_cwd", "--detach", "utils.echo").out == f"{HANDLE}\n"


@pytest.mark.parametrize("error", [SchedulerError("no logs"), ValueError("no logs"), OSError("no logs")])
def test_unreadable_logs_do_not_end_the_wait(command, scheduler, monkeypatch, error):
    def unreadable(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(scheduler, "log_iter", unreadable)
    ended = command(*RUN)
    assert (ended.code, ended.data["state"]) == (0, "SUCCEEDED")
    assert "torchx-tui: the logs cannot be read: no logs; still waiting for the job to end\n" in ended.err


@pytest.mark.parametrize("flag", ["wait", "log"])
@pytest.mark.parametrize("value", [True, False])
def test_remote_job_is_waited_for_on_request(command, scheduler, monkeypatch, flag, value):
    monkeypatch.setattr(SchedulerPool, "get", lambda self, name: scheduler)
    data = {"component_name": "utils.echo", "scheduler": "kubernetes", flag: value}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(data)))
    scheduler.state = AppState.FAILED
    ended = command("run", "--stdin", "--json")
    assert ended.code == (1 if value else 0), ended.err
    assert ("trainer/0 a line" in ended.err) == (value and flag == "log")


def test_end_is_sent_to_the_terminal(command, scheduler, monkeypatch, tmp_path):
    (tmp_path / "own.toml").write_text("[notify]\nterminal = true\n")
    scheduler.add("job-1", AppState.SUCCEEDED, 60)
    wait = ("wait", HANDLE)
    assert command("--config", "own.toml", *wait).err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert command(*wait).err == ""
    assert command("--config", "own.toml", *wait).err == "\x1b]9;job-1 succeeded\x07\x07"
    assert command("--config", "own.toml", *RUN).err.endswith("\n\x1b]9;job-1 succeeded\x07\x07")


def test_dryrun_has_no_flags_about_the_job():
    own = {"--dryrun", "--wait", "--log", "--tee_logs", "--detach", "--open", "--notify"}
    assert set(flag_names("run")) == {*flag_names("dryrun"), *own}
    assert own.isdisjoint(flag_names("dryrun"))


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("runopts local_c", "local_cwd"),
        ("configure --schedulers local_c", "local_cwd"),
        ("list --scheduler local_c", "local_cwd"),
        ("builtins --print utils.ec", "utils.echo"),
        ("run -- utils.ec", "utils.echo"),
    ],
)
def test_values_are_completed(tmp_path, line, word):
    assert completed(f"torchx-tui {line}", tmp_path) == {word}
