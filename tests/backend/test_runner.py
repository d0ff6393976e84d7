"""The Runner on a scheduler with canned answers: what it keeps, what it refuses, in which order it does things."""

import itertools
import re
import time
from dataclasses import replace
from datetime import datetime
from typing import Any
from unittest.mock import Mock, call

import pytest
from backend.tables import TABLES
from support.canned import CannedScheduler
from support.streaming import LinesScheduler

from torchx_tui.backends.history import journal as launch_journal
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.backends.launcher import ENV_JOB_ID, ENV_PARENT_RUN_ID, workspace_text
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.types import (
    DescribeAppResponse,
    Finding,
    ListAppResponse,
    LogQuery,
    StateChange,
    Stream,
)
from torchx_tui.base.files import read_file
from torchx_tui.specs import errors
from torchx_tui.specs.batch_script import BatchScript
from torchx_tui.specs.errors import (
    AppDefError,
    JobNotFoundError,
    MalformedAppHandleException,
    ReadOnlyError,
    SchedulerError,
    UnknownAppException,
)
from torchx_tui.specs.roles import AppDef, AppDryRunInfo, Role
from torchx_tui.specs.status import AppState
from torchx_tui.specs.workspace import Workspace

HANDLE = "local_cwd://torchx/train-1"


class Recorder(CannedScheduler):
    """Keeps the requests, and the app ids in the journal at each of them."""

    def __init__(self, journal):
        super().__init__()
        self.journal = journal
        self.seen = []
        self.failure = None

    def _submit_dryrun(self, app, cfg):
        return AppDryRunInfo(app, repr)

    def schedule(self, dryrun_info):
        self.seen.append((dryrun_info.request, [record.app_id for record in self.journal.records()]))
        if self.failure:
            raise self.failure
        app_id = f"{dryrun_info.request.name}-{len(self.seen)}"
        self.add(app_id, AppState.RUNNING, 1)
        return app_id


@pytest.fixture
def scheduler(journal):
    return Recorder(journal)


@pytest.fixture
def app():
    return AppDef("train", [Role("trainer", "image", entrypoint="python3")])


@pytest.fixture
def launched(runner, app):
    origin = LaunchOrigin("demo.train", {"steps": "3"})
    assert runner.run(app, "local_cwd", {"log_dir": "/x"}, origin=origin) == HANDLE


# Launching


def test_the_intent_is_recorded_before_the_launch(launched, scheduler, journal, app):
    ((request, recorded),) = scheduler.seen
    (record,) = journal.records()
    assert recorded == [""]
    assert (record.app_id, record.component, record.arguments) == ("train-1", "demo.train", {"steps": "3"})
    assert record.app_def() == app
    assert app.roles[0].env == {}
    assert request.roles[0].env[ENV_JOB_ID] == "local_cwd://torchx/${app_id}"


def test_a_failed_launch_keeps_its_reason(runner, scheduler, journal, app):
    scheduler.failure = SchedulerError("no room")
    with pytest.raises(SchedulerError, match="no room"):
        runner.run(app, "local_cwd", {})
    (record,) = journal.records()
    assert (record.app_id, record.error, record.state, record.handle) == ("", "no room", "FAILED", "")


def test_no_launch_without_a_journal(runner, scheduler, journal, app):
    journal.folder.parent.mkdir(exist_ok=True)
    journal.folder.write_text("a file where the folder should be")
    with pytest.raises(SchedulerError, match="nothing was launched"):
        runner.run(app, "local_cwd", {})
    assert scheduler.seen == []


@pytest.mark.parametrize(("name", "roles", "backend", "cfg", "error", "words"), TABLES["runner"]["impossible"])
def test_impossible_launches_are_refused(runner, scheduler, journal, name, roles, backend, cfg, error, words):
    app = AppDef(name, [Role("r", "", **role) for role in roles])
    with pytest.raises(getattr(errors, error), match=words):
        runner.run(app, backend, cfg)
    assert (scheduler.seen, journal.records()) == ([], [])


def test_too_many_replicas_are_refused(scheduler, journal, app):
    runner = Runner(journal=journal, most_replicas=10, schedulers={"local_cwd": scheduler})
    app.roles[0].num_replicas = 99_999_999_999_999
    words = (
        r"role trainer asks for 99,999,999,999,999 replicas, and an app may have 10: .*most_replicas under \[launch\]"
    )
    for ask in (runner.dryrun, runner.run, runner.check_names, runner.preflight):
        with pytest.raises(AppDefError, match=words):
            ask(app, "local_cwd", {})
    app.roles[0].num_replicas = 5
    app.roles.append(Role("other", "image", entrypoint="x", num_replicas=6))
    with pytest.raises(AppDefError, match="the 2 roles ask for 11 replicas"):
        runner.dryrun(app, "local_cwd", {})
    app.roles[1].num_replicas = 5
    runner.dryrun(app, "local_cwd", {})
    assert (scheduler.seen, journal.records()) == ([], [])


def test_batch_scripts_need_a_capability(runner):
    with pytest.raises(AppDefError, match="local_cwd runs no batch scripts"):
        runner.dryrun(AppDef("script", [BatchScript("#!/bin/sh\n").role()]), "local_cwd")


def test_ignored_retries_are_a_warning(runner, app):
    app.roles[0].max_retries = 0
    assert runner.preflight(app, "local_cwd", {}) == []
    app.roles[0].max_retries = 1
    (warning,) = runner.preflight(app, "local_cwd", {})
    assert (warning.level, warning.hint) == ("warning", "max_retries=1 is ignored")


def test_a_run_keeps_its_parent(runner, scheduler, journal, app, monkeypatch):
    runner.run(app, "local_cwd", None, None, "parent-1")
    assert scheduler.seen[0][0].roles[0].env[ENV_PARENT_RUN_ID] == "parent-1"
    # A relaunch has the same parent.
    assert journal.records()[0].app_def().roles[0].env == {ENV_PARENT_RUN_ID: "parent-1"}
    assert app.roles[0].env == {}
    monkeypatch.setenv(ENV_PARENT_RUN_ID, "parent-2")
    info = runner.dryrun(app, "local_cwd", parent_run_id="parent-1")
    assert info.app.roles[0].env[ENV_PARENT_RUN_ID] == "parent-2"


@pytest.mark.parametrize("read_only", [False, True])
def test_run_with_dryrun_launches_nothing(runner, scheduler, app, journal, read_only):
    runner.read_only = read_only
    info = runner.run(app, "local_cwd", dryrun=True)
    assert isinstance(info, AppDryRunInfo)
    assert info._scheduler == "local_cwd"  # TorchX's own code reads it
    assert (scheduler.seen, journal.records()) == ([], [])


@pytest.mark.parametrize("projects", [{"/a": ""}, {"/a": "", "/b": "lib: x"}])
def test_a_workspace_becomes_a_text(projects):
    workspace = Workspace(projects)
    assert Workspace.from_str(workspace_text(workspace)) == workspace
    assert (workspace_text(Workspace({})), workspace_text(""), workspace_text("/a")) == (None, None, "/a")


# Relaunching


def test_a_relaunch_is_the_same_again(launched, runner, journal):
    assert runner.relaunch(HANDLE) == "local_cwd://torchx/train-2"
    again, before = journal.records()
    varying = {name: getattr(before, name) for name in ("id", "at", "app_id", "relaunch_of", "state_at", "world")}
    assert replace(again, **varying) == before
    assert again.relaunch_of == before.id


def test_relaunch_leaves_the_sweep(runner, journal, app):
    handle = runner.run(app, "local_cwd", origin=LaunchOrigin(group="sweep-1", swept={"lr": "0.1"}))
    runner.relaunch(handle)
    assert [(record.group, record.swept) for record in journal.records()] == [("", {}), ("sweep-1", {"lr": "0.1"})]


def test_a_relaunch_without_a_record_asks_the_backend(runner, scheduler):
    for number, (app_id, name) in enumerate({"other-1": "other", "nameless": "nameless"}.items()):
        scheduler.add(app_id, AppState.SUCCEEDED, 60, replicas=2)
        runner.relaunch(f"local_cwd://torchx/{app_id}")
        app, _ = scheduler.seen[number]
        assert (app.name, app.roles[0].args, app.roles[0].num_replicas) == (name, ["train.py"], 2)
    with pytest.raises(UnknownAppException):
        runner.relaunch("local_cwd://torchx/never-was")


# Jobs


@pytest.fixture
def busy():
    """Return a scheduler whose methods are mocks."""
    busy = CannedScheduler()
    answers: dict[str, Any] = {
        "own_app_ids": ["a-1", "a-2"],
        "prune": ["old-1"],
        "usage": ["usage"],
        "actions": ["hold"],
    }
    for name in ("detach", "end_own", "act", "run_beside", "shell_command", "log_iter", "describe_native"):
        answers[name] = name
    for name, answer in answers.items():
        setattr(busy, name, Mock(return_value=answer))
    return busy


@pytest.fixture
def busy_runner(busy, journal):
    return Runner(journal=journal, schedulers={"local_cwd": busy})


def test_changes_are_refused_in_read_only_mode(busy_runner, busy, journal, app):
    busy_runner.read_only = True
    busy.add("train-1", AppState.RUNNING, 1)
    job = busy_runner.job(HANDLE)
    for words, change, arguments in (
        ("Launching", busy_runner.run, (app, "local_cwd", {})),
        ("Launching", busy_runner.relaunch, (HANDLE,)),
        ("Cancelling", job.cancel, ()),
        ("Deleting", job.delete, ()),
        ("The action hold", job.act, ("hold",)),
        ("Removing finished jobs", busy_runner.prune, ("local_cwd",)),
        ("A shell", job.shell_command, ("r", 0)),
    ):
        with pytest.raises(ReadOnlyError, match=words):
            change(*arguments)
    assert (busy.cancelled, busy.act.mock_calls, busy.prune.mock_calls, journal.records()) == ([], [], [], [])
    assert busy.shell_command.mock_calls == []
    assert [one.app_handle for one in busy_runner.list("local_cwd")] == [HANDLE]
    assert busy_runner.prune("local_cwd", dryrun=True) == ["local_cwd://torchx/old-1"]


@pytest.mark.parametrize(("method", "arguments", "expected"), TABLES["runner"]["passed_on"])
def test_requests_are_passed_on(busy_runner, busy, method, arguments, expected):
    mock = getattr(busy, method)
    answer = None if method == "act" else mock.return_value
    assert getattr(busy_runner.job(HANDLE), method)(*arguments) == answer
    assert mock.mock_calls == [call(*expected)]


@pytest.mark.parametrize(("method", "arguments", "message"), TABLES["runner"]["missing"])
def test_a_missing_ability_is_an_error(journal, method, arguments, message):
    job = Runner(journal=journal, schedulers={"local_cwd": LinesScheduler()}).job(HANDLE)
    with pytest.raises(SchedulerError, match=message):
        getattr(job, method)(*arguments)
    assert (job.usage(), job.actions()) == ([], [])


def test_own_jobs_end_with_the_process(busy_runner, busy):
    busy_runner.scheduler("local_cwd")
    assert busy_runner.own_jobs() == ["local_cwd://torchx/a-1", "local_cwd://torchx/a-2"]
    busy_runner.end_own_jobs()
    busy.end_own.assert_called_once_with()
    busy_runner.detach(HANDLE)
    busy.detach.assert_called_once_with("train-1")


def test_finished_jobs_are_removed(busy_runner, busy):
    assert busy_runner.prune("local_cwd", dryrun=True) == ["local_cwd://torchx/old-1"]
    assert busy_runner.prune("local_cwd") == ["local_cwd://torchx/old-1"]
    assert busy.prune.mock_calls == [call(dryrun=True), call(dryrun=False)]


def test_cancel_is_noted_and_delete_forgets(launched, runner, scheduler, journal):
    runner.job(HANDLE).cancel()
    assert scheduler.cancelled == ["train-1"]
    (record,) = journal.records()
    assert record.cancelled_at is not None
    assert record.cancelled_by
    runner.job(HANDLE).delete()
    assert (scheduler.apps, journal.records()) == ({}, [])


def test_wait_returns_the_status(runner, scheduler):
    scheduler.add("x-1", AppState.FAILED, 60, why="exit 1")
    status = runner.job("local_cwd://torchx/x-1").wait()
    assert (status.state, status.msg) == (AppState.FAILED, "exit 1")
    assert (runner.job(HANDLE).status(), runner.job(HANDLE).wait()) == (None, None)
    with pytest.raises(MalformedAppHandleException, match="<scheduler_backend>"):
        runner.job("nonsense").describe()


def test_a_query_of_an_unknown_job_names_it(busy_runner, busy):
    job = busy_runner.job(HANDLE)
    assert job.log_lines("r") == "log_iter"
    busy.log_iter.assert_called_once_with("train-1", "r", 0, None, None, None, False, streams=None)
    busy.log_iter.side_effect = JobNotFoundError("train-1", "local_cwd")
    with pytest.raises(UnknownAppException, match="torchx/train-1 is not known"):
        job.log_lines("r")


def test_log_queries():
    assert LogQuery.parse("a", "r") == LogQuery(
        "a", "r", k=0, stream=Stream.COMBINED, pattern=None, since=None, until=None, follow=False
    )
    times = (datetime.fromtimestamp(5), datetime.fromtimestamp(7))
    asked = LogQuery.parse("a", "r", 3, "x+", *times, True, "stdout")
    assert asked == LogQuery(
        "a", "r", k=3, stream=Stream.STDOUT, pattern=re.compile("x+"), since=5.0, until=7.0, follow=True
    )
    with pytest.raises(ValueError, match="not a regular expression: "):
        LogQuery.parse("a", "r", regex="(")


# States in the journal


def test_a_state_is_kept_when_it_is_seen(launched, runner, scheduler, journal):
    for state, why, kept in (
        (AppState.RUNNING, "it waits", ""), (AppState.FAILED, "exit 1", "exit 1"), (AppState.SUCCEEDED, "<NONE>", ""),
    ):  # fmt: skip
        scheduler.described["train-1"] = replace(scheduler.described["train-1"], state=state, msg=why)
        assert runner.job(HANDLE).status().state is state
        (record,) = journal.records()
        assert (record.state, record.message, record.app_id) == (state.name, kept, "train-1")
        assert record.state_at >= record.at


def test_a_state_is_written_once(launched, runner, journal, monkeypatch):
    runner.remember(HANDLE, AppState.RUNNING, "it runs")
    records = journal.records()
    with monkeypatch.context() as unasked:
        unasked.setattr(Journal, "find_all", lambda *_: pytest.fail("the journal was asked again"))
        runner.remember(HANDLE, AppState.RUNNING, "it runs")
    assert journal.records() == records
    runner.remember(HANDLE, AppState.RUNNING, "it runs well")
    assert journal.records()[0].message == "it runs well"


def test_a_state_seen_before_its_record_is_kept(runner, journal, app):
    runner.remember(HANDLE, AppState.RUNNING, "it runs")
    journal.record_intent(app, "local_cwd", "torchx", {}, expected_app_id="train-1")
    runner.remember(HANDLE, AppState.RUNNING, "it runs")
    assert [(record.state, record.message) for record in journal.records()] == [("RUNNING", "it runs")]


def test_states_of_others_jobs_read_little(journal, app, monkeypatch):
    for number in range(60):
        journal.record_intent(app, "local_cwd", "torchx", {}, expected_app_id=f"job{number}")
    looks, read = itertools.count(), []
    monkeypatch.setattr(launch_journal, "read_file", lambda path, limit: read.append(path) or read_file(path, limit))
    # Reading the clock takes some time.
    monkeypatch.setattr(time, "monotonic", lambda: next(looks) / 200)
    Runner(journal=Journal(journal.folder)).remember(HANDLE, AppState.RUNNING, "")
    assert 0 < len(read) < 30


# Odd answers


@pytest.mark.parametrize("answer", ["nonsense", [1], None])
def test_an_answer_that_is_no_list_is_an_error(runner, scheduler, monkeypatch, answer):
    monkeypatch.setattr(scheduler, "list", lambda cfg=None: answer)
    with pytest.raises(SchedulerError, match=r"local_cwd did not answer with a list of jobs, but with "):
        runner.list("local_cwd")


def test_odd_ids_and_times_are_left_out(runner, scheduler, monkeypatch):
    nan = float("nan")
    rows = [ListAppResponse(app_id, AppState.RUNNING, started_at=nan) for app_id in ("a", "", "b\nc")]
    monkeypatch.setattr(scheduler, "list", lambda cfg=None: rows)
    (row,) = runner.list("local_cwd")
    assert (row.app_id, row.started_at) == ("a", None)
    never = [StateChange(AppState.RUNNING, nan)]
    scheduler.described["a"] = DescribeAppResponse("a", AppState.RUNNING, started_at=nan, timeline=never)
    described = runner.job(row.app_handle).describe()
    assert (described.started_at, described.timeline) == (None, [])


# Schedulers


@pytest.mark.parametrize(("levels", "watched", "chosen"), TABLES["runner"]["defaults"])
def test_the_default_is_the_first_usable_scheduler(monkeypatch, levels, watched, chosen):
    schedulers = {"first": CannedScheduler(), "second": CannedScheduler()}
    for scheduler, level in zip(schedulers.values(), levels, strict=True):
        scheduler.findings = [Finding("ok", "something"), Finding(level, "what was found")]
    runner = Runner(schedulers=schedulers)
    monkeypatch.setattr(runner, "scheduler_names", lambda: list(schedulers))
    monkeypatch.setattr(runner, "watched_schedulers", lambda: watched)
    assert runner.default_scheduler() == chosen


def test_leaving_a_runner_closes_its_schedulers(scheduler, journal):
    scheduler.close = Mock()
    with Runner(journal=journal, schedulers={"local_cwd": scheduler}):
        scheduler.close.assert_not_called()
    scheduler.close.assert_called_once_with()
