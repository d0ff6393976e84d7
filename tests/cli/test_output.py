"""What the commands print, to the letter: helps, states, findings, tables, and what they say of a job's end."""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.canned import CannedScheduler
from support.command import Command
from support.component_files import ComponentFile

from torchx_tui.backends.runner import Runner
from torchx_tui.backends.scheduler_pool import SchedulerPool
from torchx_tui.backends.types import Finding
from torchx_tui.cli import doctor
from torchx_tui.cli.cancel import COMMANDS as ENDING
from torchx_tui.cli.follow import Interrupted, end_or_leave, interruptible
from torchx_tui.cli.main import terminal_width
from torchx_tui.cli.output import plain_lines, put_table
from torchx_tui.cli.run import COMMANDS as LAUNCHING
from torchx_tui.cli.run_arguments import flag_names
from torchx_tui.cli.status import status_json
from torchx_tui.specs import AppState, AppStatus

HANDLE = "local_cwd://torchx/job-1"


class Screen(io.StringIO):
    """A stdout that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> CannedScheduler:
    """Give the scheduler that every command asks for local jobs."""
    made = CannedScheduler()
    before = SchedulerPool.get
    monkeypatch.setattr(SchedulerPool, "get", lambda self, name: made if name == "local_cwd" else before(self, name))
    return made


# Helps


@pytest.mark.parametrize(("columns", "width"), [("60", 58), ("200", 198), ("0", 78), ("many", 78), ("", 78)])
def test_a_help_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert terminal_width() == width + 2
    with open(os.devnull) as no_terminal:
        monkeypatch.setattr(sys, "stdout", no_terminal)
        assert terminal_width() == width + 2


def test_a_help_is_as_wide_as_a_terminal_that_says_so_and_no_wider_than_can_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    for columns, width in ((90, 88), (500, 118), (0, 78)):
        monkeypatch.setattr(os, "get_terminal_size", lambda _, columns=columns: os.terminal_size((columns, 24)))
        monkeypatch.setattr(sys, "stdout", open(os.devnull))  # noqa: SIM115 - a stdout that has a number
        assert terminal_width() == width + 2


COMPONENT = '''
def job(size: int, name: str = "", rate: float = 0.5, mode: Literal["a", "b"] = "a", *words: str) -> AppDef:
    """Do a job.

    And more of it.

    Args:
        size: how large
        name: what it is called
        rate: how fast
        mode: which way
        words: what it is told
    """
    return AppDef("job")
'''


def test_the_help_of_a_component(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "jobs.py"
    ComponentFile(path).write("from typing import Literal\n" + COMPONENT)
    (tmp_path / ".torchxconfig").write_text("[component:jobs.py:job]\nrate = 0.7\n")
    ended = command("run", "jobs.py:job", "--help")
    assert ended.code == 0
    usage, rest = ended.out.split("\n\n", 1)
    assert " ".join(usage.split()) == (
        "usage: torchx-tui run jobs.py:job --size SIZE [--name NAME] [--rate RATE] [--mode MODE] [-- WORDS...]"
    )
    expected = f"""Do a job.

And more of it.

arguments:
    --size  (int, required)
        how large
    --name  (str)
        what it is called
    --rate  (float, 0.7 ({tmp_path}/.torchxconfig, section [component:jobs.py:job]))
        how fast
    --mode  (a | b, a)
        which way
    WORDS...  (str)
        what it is told
"""
    assert rest.rpartition("\n\n")[0] == expected.rstrip("\n")


def test_a_long_help_of_a_component_is_broken_into_lines_of_100(command: Command, tmp_path: Path) -> None:
    words = ", ".join(f"parameter_{number}: int = 1" for number in range(9))
    docstring = f"Do a job.\n\n    Args:\n        n: {'a ' * 99}\n    "
    text = f'def job(n: int, {words}) -> AppDef:\n    """{docstring}"""\n    return AppDef("job")\n'
    ComponentFile(tmp_path / "jobs.py").write(text)
    first, *lines = command("run", "jobs.py:job", "--help").out.splitlines()
    usage = lines[: lines.index("")]
    assert first.startswith("usage: torchx-tui run jobs.py:job -n N [--parameter_0 PARAMETER_0] ")
    assert len(usage) == 3
    assert all(line.startswith("    [--parameter_") for line in usage)
    place = lines.index("    -n, --n  (int, required)")
    assert lines[place + 1 : place + 4] == [f"        {' '.join('a' * count)}" for count in (46, 46, 7)]


@pytest.mark.parametrize("verb", ["wait", "log", "prune", "runopts", "configure", "builtins", "lint", "list", "status"])
def test_every_command_has_a_help(command: Command, verb: str) -> None:
    helped = command(verb, "--help").out
    assert helped.startswith(f"usage: torchx-tui {verb} [-h]")
    assert not [
        line for line in helped.splitlines() if line.rstrip().endswith(("--timeout", "--older-than", "--print "))
    ]
    if verb == "wait":
        assert "--timeout SECONDS" in helped


# States and statuses


def test_states_are_words_in_what_is_printed_as_json(command: Command, scheduler: CannedScheduler) -> None:
    scheduler.add("job-1", AppState.FAILED, 60, replicas=2)
    data = command("describe", "--json", HANDLE).data
    assert [one["state"] for role in data["roles_statuses"] for one in role["replicas"]] == ["FAILED", "FAILED"]
    assert [change["state"] for change in data["timeline"]] == ["SUBMITTED", "RUNNING", "FAILED"]
    assert (data["app_id"], data["scheduler"], data["handle"]) == ("job-1", "local_cwd", HANDLE)
    (row,) = command("list", "-s", "local_cwd", "--json").data
    assert (row["app_id"], row["scheduler"], row["handle"], row["state"]) == ("job-1", "local_cwd", HANDLE, "FAILED")
    assert "app_handle" not in row


def test_a_status_names_the_place_where_else_the_job_can_be_looked_at() -> None:
    status = AppStatus(AppState.RUNNING, ui_url="https://x")
    data = status_json(HANDLE, status)
    assert {name: data[name] for name in ("handle", "app_id", "scheduler", "ui_url")} == {
        "handle": HANDLE,
        "app_id": "job-1",
        "scheduler": "local_cwd",
        "ui_url": "https://x",
    }


def test_a_role_that_is_not_there_is_named_with_those_that_are(command: Command, scheduler: CannedScheduler) -> None:
    scheduler.add("job-1", AppState.RUNNING, 60)
    ended = command("status", "--roles", "nope,trainer", HANDLE)
    assert ended.err == f"torchx-tui: {HANDLE} has no role nope; its roles are trainer\n"
    scheduler.described["job-1"].roles_statuses = []
    assert "its roles are trainer" in command("status", "--roles", "nope", HANDLE).err
    scheduler.described["job-1"].roles = []
    assert "its roles are not known" in command("status", "--roles", "nope", HANDLE).err


def test_a_job_that_ended_already_is_said_to_have(command: Command, scheduler: CannedScheduler) -> None:
    scheduler.add("job-1", AppState.SUCCEEDED, 60)
    assert command("cancel", HANDLE).err == f"torchx-tui: {HANDLE} has ended already: SUCCEEDED\n"
    scheduler.add("job-2", AppState.RUNNING, 60)
    ended = command("cancel", "local_cwd://torchx/job-2")
    assert (ended.code, ended.err, ended.out) == (0, "", "")
    assert "job-2" in scheduler.cancelled


def test_a_job_that_does_not_end_in_time(command: Command, scheduler: CannedScheduler) -> None:
    scheduler.add("job-1", AppState.RUNNING, 60)
    ended = command("wait", "--timeout", "0", HANDLE)
    assert (ended.code, ended.out) == (124, "")
    assert ended.err == f"torchx-tui: {HANDLE} has not ended within 0 s: RUNNING\n"


def test_the_end_of_a_job_is_told_to_the_terminal_where_that_is_wanted(
    command: Command, scheduler: CannedScheduler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "own.toml").write_text("[notify]\nterminal = true\n")
    scheduler.add("job-1", AppState.SUCCEEDED, 60)
    monkeypatch.delenv("TMUX", raising=False)
    assert command("--config", "own.toml", "wait", HANDLE).err == ""
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    assert command("wait", HANDLE).code == 0
    assert screen.getvalue() == ""
    assert command("--config", "own.toml", "wait", HANDLE).code == 0
    assert screen.getvalue() == "\x1b]9;job-1 succeeded\x07\x07"


def test_the_end_of_a_launched_job_is_told_to_the_terminal(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "own.toml").write_text("[notify]\nterminal = true\n")
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    app_id = command("--config", "own.toml", "run", "-s", "local_cwd", "utils.echo").out.splitlines()[0].split("/")[-1]
    assert screen.getvalue().endswith(f"\n\x1b]9;{app_id} succeeded\x07\x07")


@pytest.mark.parametrize("days", ["-1", "nan", "inf", "week", ""])
def test_an_age_that_is_none(command: Command, days: str) -> None:
    ended = command("prune", "--older-than", days)
    assert (ended.code, f"{days}: give a number of days, such as 7 or 0.5" in ended.err) == (2, True)


@pytest.mark.parametrize("days", ["0", "0.5", "7"])
def test_an_age_in_days(days: str) -> None:
    parser = argparse.ArgumentParser()
    ENDING["prune"][0](parser)
    parsed = parser.parse_args(["--older-than", days])
    assert (parsed.older_than, parsed.scheduler, parsed.dryrun) == (float(days), "local_cwd", False)


def test_only_own_jobs_that_ended_long_enough_ago_are_removed(
    command: Command, scheduler: CannedScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchx_tui.specs.files.user_name", lambda: "alice")
    monkeypatch.setattr("time.time", lambda: scheduler.apps["old-1"].finished_at + 86400 * 2)  # type: ignore[operator]
    for app_id in ("old-1", "other-1", "foreign-1"):
        scheduler.add(app_id, AppState.SUCCEEDED, 3600)
    scheduler.add("runs-1", AppState.RUNNING, 3600)
    scheduler.apps["other-1"].user = "bob"
    scheduler.apps["foreign-1"].foreign = True
    assert command("prune", "--older-than", "2").out == ""
    assert command("prune", "--older-than", "1.9", "--dryrun").out == "local_cwd://torchx/old-1\n"
    assert set(scheduler.apps) == {"old-1", "other-1", "foreign-1", "runs-1"}
    assert command("prune", "--older-than", "1.9").out == "local_cwd://torchx/old-1\n"
    assert set(scheduler.apps) == {"other-1", "foreign-1", "runs-1"}


# Signals


class Jobs:
    """A runner that notes what it is told to end."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def end_own_jobs(self) -> None:
        self.ended.append("own")

    def cancel(self, handle: str) -> None:
        self.ended.append(handle)


@pytest.fixture
def jobs() -> Iterator[Any]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield Jobs()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_job_that_ends_with_this_command(jobs: Any, capsys: Any, number: signal.Signals) -> None:
    assert end_or_leave(jobs, HANDLE, Interrupted(number), ends=True) == 128 + number
    assert jobs.ended == ["own", HANDLE]
    assert capsys.readouterr().err == f"torchx-tui: cancelled {HANDLE}\n"
    assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_signal_leaves_another_job_and_says_how_it_is_ended(jobs: Any, capsys: Any) -> None:
    assert end_or_leave(jobs, HANDLE, KeyboardInterrupt(), ends=False) == 130
    assert jobs.ended == []
    assert capsys.readouterr().err == f"torchx-tui: {HANDLE} continues; `torchx-tui cancel {HANDLE}` ends it\n"


def test_a_signal_before_there_is_a_job_says_nothing(jobs: Any, capsys: Any) -> None:
    assert end_or_leave(jobs, "", Interrupted(signal.SIGTERM), ends=False) == 143
    assert end_or_leave(jobs, "", Interrupted(signal.SIGTERM), ends=True) == 143
    assert (jobs.ended, capsys.readouterr().err) == (["own"], "")


def test_both_signals_interrupt_and_are_as_before_afterwards(jobs: Any) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    for number in (signal.SIGINT, signal.SIGTERM):
        with pytest.raises(Interrupted) as raised, interruptible():
            os.kill(os.getpid(), number)
        assert raised.value.number == number
        assert str(raised.value) == number.name
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


# Launches


def test_a_launch_that_is_detached_tells_its_handle_and_its_place(
    command: Command, scheduler: CannedScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def schedule(info: Any) -> str:
        scheduler.add("job-1", AppState.RUNNING, 1)
        scheduler.described["job-1"].ui_url = "https://x"
        return "job-1"

    detached: list[str] = []
    monkeypatch.setattr(scheduler, "schedule", schedule)
    monkeypatch.setattr(scheduler, "detach", detached.append)
    monkeypatch.setattr(Runner, "scheduler_names", lambda self: ["local_cwd"])
    ended = command("run", "-s", "local_cwd", "--detach", "--json", "utils.echo")
    assert ended.code == 0, ended.err
    assert ended.data == {
        "handle": HANDLE,
        "app_id": "job-1",
        "scheduler": "local_cwd",
        "state": "RUNNING",
        "ui_url": "https://x",
    }
    assert detached == ["job-1"]
    assert command("run", "-s", "local_cwd", "--detach", "utils.echo").out == f"{HANDLE}\n"


def test_every_launching_command_takes_the_same_flags() -> None:
    flags: dict[str, set[str]] = {}
    for name in ("run", "dryrun"):
        parser = argparse.ArgumentParser()
        LAUNCHING[name][0](parser)
        flags[name] = {option for action in parser._actions for option in action.option_strings}
    assert flags["run"] - flags["dryrun"] == {
        "--dryrun",
        "--wait",
        "--log",
        "--tee_logs",
        "--detach",
        "--open",
        "--notify",
    }
    assert flags["dryrun"] <= flags["run"]
    for name in ("run", "dryrun"):
        assert set(flag_names(name)) == {flag for flag in flags[name] if flag.startswith("--")} - {
            *("--help", "--buck-target"),
        }


def test_a_flag_of_run_alone_is_refused_behind_the_component_of_a_dry_run(command: Command) -> None:
    ended = command("dryrun", "-s", "local_cwd", "utils.echo", "--wait")
    assert (ended.code, ended.out) == (2, "")
    assert "--wait" in ended.err


# Findings and tables


def test_findings_have_colors_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.delenv("NO_COLOR", raising=False)
    for level, color in (("ok", 32), ("warning", 33), ("error", 31)):
        doctor.print_finding(Finding(level, "it\x1b[2J is", "do\x07 this"))  # type: ignore[arg-type]
        assert screen.getvalue() == f"  \x1b[{color}m{level:<7}\x1b[0m  it is\n           do this\n"
        screen.seek(0)
        screen.truncate()
    monkeypatch.setenv("NO_COLOR", "1")
    doctor.print_finding(Finding("error", "what"))
    assert screen.getvalue() == "  error    what\n"


class Diagnosis:
    """One finding of a subject."""

    def __init__(self, subject: str, level: str, what: str, hint: str = "") -> None:
        self.subject = subject
        self.finding = Finding(level, what, hint)  # type: ignore[arg-type]


@pytest.mark.parametrize(("last", "code"), [("ok", 0), ("warning", 0), ("error", 1)])
def test_each_subject_stands_once_above_its_findings(
    command: Command, monkeypatch: pytest.MonkeyPatch, last: str, code: int
) -> None:
    found = [Diagnosis("a", "ok", "1"), Diagnosis("a", "ok", "2"), Diagnosis("b", last, "3", "do")]
    monkeypatch.setattr(doctor, "diagnose", lambda *_: iter(found))
    ended = command("doctor")
    assert ended.code == code
    assert ended.out == f"a\n  ok       1\n  ok       2\nb\n  {last:<7}  3\n           do\n"
    told = command("doctor", "--json")
    assert (told.code, told.data[-1]) == (code, {"subject": "b", "level": last, "what": "3", "hint": "do"})


def test_a_table_has_its_columns_one_under_the_other(capsys: Any) -> None:
    put_table([("A", "LONG", "C"), ("one\ntwo", "x", ""), ("\x1b[31m", "y", "z")])
    assert capsys.readouterr().out == "A        LONG  C\none two  x\n         y     z\n"
    put_table([])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("text", "shown"), [("a\nb\n", "a\nb"), ("a\x1b[2Jb\nc\n", "ab\nc"), ("é\tx\n", "é x"), ("", "")]
)
def test_lines_without_what_a_terminal_would_act_on(text: str, shown: str) -> None:
    assert plain_lines(text) == shown


def test_what_is_printed_of_a_config_ends_with_one_end_of_line(command: Command) -> None:
    ended = command("configure", "--print", "--all", "-s", "local_cwd")
    assert ended.code == 0
    assert ended.out.startswith("[local_cwd]\n")
    assert ended.out.endswith("\n")
    assert not ended.out.endswith("\n\n")


# stdin


@pytest.mark.parametrize(
    "flag", ["--set=r.image=x", "--workspace=x", "--parent_run_id=x", "--wait", "--log", "--tee_logs", "--detach"]
)
def test_nothing_else_may_stand_beside_an_object_on_stdin(
    command: Command, monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"component_name": "utils.echo"})))
    ended = command("run", "--stdin", flag)
    assert ended.code == 2
    name = flag.removeprefix("--").partition("=")[0]
    assert ended.err == f"torchx-tui: --stdin takes everything from the JSON object: leave out {name}\n"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "str") for name in ("component_name", "scheduler", "workspace", "parent_run_id")),
        *((name, "dict") for name in ("component_args", "scheduler_args", "scheduler_cfg")),
        *((name, "bool") for name in ("dryrun", "wait", "log", "tee_logs")),
        ("component_args_str", "list"),
    ],
)
def test_each_field_of_an_object_on_stdin_has_its_kind(
    command: Command, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    data = {"component_name": "utils.echo", name: 7}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(data)))
    ended = command("dryrun", "--stdin")
    assert (ended.code, ended.err) == (2, f"torchx-tui: the JSON object on stdin: {name} is 7, use a {kind}\n")


def test_run_options_on_stdin_may_have_either_name(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("scheduler_args", "scheduler_cfg"):
        data = {"component_name": "utils.echo", "scheduler": "local_cwd", name: {"log_dir": f"/{name}"}}
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(data)))
        assert command("dryrun", "--stdin", "--json").data["cfg"]["log_dir"] == f"/{name}"
