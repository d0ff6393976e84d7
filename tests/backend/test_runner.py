"""The Runner on a scheduler with canned answers: what it keeps, what it refuses, in which order it does things."""

import itertools
import time
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from support.canned import CannedScheduler

from torchx_tui.backends.history import journal as launch_journal
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.backends.launcher import ENV_JOB_ID, ENV_PARENT_RUN_ID, workspace_text
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.shared.bounded_command import CommandOutput
from torchx_tui.backends.types import (
    Capabilities,
    DescribeAppResponse,
    Finding,
    JobAction,
    ListAppResponse,
    LogQuery,
    ReplicaUsage,
    StateChange,
    Stream,
)
from torchx_tui.specs import (
    MISSING,
    AppDef,
    AppDefError,
    AppDryRunInfo,
    AppState,
    InvalidRunConfigException,
    JobNotFoundError,
    MalformedAppHandleException,
    ReadOnlyError,
    Role,
    SchedulerError,
    UnknownAppException,
    UnknownSchedulerException,
    Workspace,
)
from torchx_tui.specs.batch_script import BatchScript
from torchx_tui.specs.files import read_file


class Recorder(CannedScheduler):
    """Notes what was scheduled, and what the journal held by then."""

    def __init__(self, journal):
        super().__init__()
        self.journal = journal
        self.seen = []
        self.failure = None

    def _submit_dryrun(self, app, cfg) -> AppDryRunInfo[Any]:
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


def test_the_intent_is_written_before_the_scheduler_is_asked(runner, scheduler, journal, app):
    handle = runner.run(app, "local_cwd", {}, origin=LaunchOrigin("demo.train", {"steps": "3"}))
    assert handle == "local_cwd://torchx/train-1"
    assert scheduler.seen[0][1] == [""]
    (record,) = journal.records()
    assert (record.app_id, record.component, record.arguments) == ("train-1", "demo.train", {"steps": "3"})
    assert record.app_def() == app


def test_whoever_sees_a_job_keeps_its_state_for_when_its_backend_is_gone(runner, scheduler, journal, app):
    handle = runner.run(app, "local_cwd", {})
    for state, why, kept in (
        (AppState.RUNNING, "it waits", ""), (AppState.FAILED, "exit 1", "exit 1"), (AppState.SUCCEEDED, "<NONE>", ""),
    ):  # fmt: skip
        scheduler.described["train-1"] = replace(scheduler.described["train-1"], state=state, msg=why)
        assert runner.status(handle).state is state
        (record,) = journal.records()
        assert (record.state, record.message) == (state.name, kept)
        assert record.state_at >= record.at


def test_the_app_given_is_not_changed_and_the_job_knows_its_handle(runner, scheduler, app):
    runner.run(app, "local_cwd", {})
    assert app.roles[0].env == {}
    assert scheduler.seen[0][0].roles[0].env[ENV_JOB_ID] == "local_cwd://torchx/${app_id}"


def test_a_failed_launch_keeps_its_record_with_the_reason(runner, scheduler, journal, app):
    scheduler.failure = SchedulerError("no room")
    with pytest.raises(SchedulerError, match="no room"):
        runner.run(app, "local_cwd", {})
    (record,) = journal.records()
    assert (record.app_id, record.error, record.state, record.handle) == ("", "no room", "FAILED", "")


def test_nothing_is_launched_when_the_journal_cannot_be_written(runner, scheduler, journal, app):
    journal.folder.parent.mkdir(exist_ok=True)
    journal.folder.write_text("a file where the folder should be")
    with pytest.raises(SchedulerError, match="nothing was launched"):
        runner.run(app, "local_cwd", {})
    assert scheduler.seen == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda app: app.roles.clear(), "no roles"),
        (lambda app: setattr(app.roles[0], "entrypoint", MISSING), "no entrypoint"),
        (lambda app: setattr(app.roles[0], "num_replicas", -1), "-1 replicas"),
    ],
)
def test_an_app_that_cannot_run_is_refused(runner, scheduler, journal, app, change, words):
    change(app)
    with pytest.raises(AppDefError, match=words):
        runner.run(app, "local_cwd", {})
    assert (scheduler.seen, journal.records()) == ([], [])


def test_more_replicas_than_anybody_wants_are_refused_before_the_scheduler_is_asked(scheduler, journal, app):
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


def test_an_unknown_option_names_the_valid_ones(runner, scheduler, app):
    with pytest.raises(InvalidRunConfigException, match="log_dir"):
        runner.run(app, "local_cwd", {"logdir": "x"})
    assert scheduler.seen == []


def test_an_unknown_scheduler_names_the_valid_ones(runner, app):
    with pytest.raises(UnknownSchedulerException, match="local_cwd"):
        runner.run(app, "nowhere", {})


def test_relaunch_is_the_same_again(runner, scheduler, journal, app):
    first = runner.run(app, "local_cwd", {"log_dir": "/x"}, origin=LaunchOrigin("demo.train", {"steps": "3"}))
    second = runner.relaunch(first)
    assert second != first
    again, before = journal.records()
    assert again.app == before.app
    assert (again.cfg, again.component, again.arguments) == (before.cfg, before.component, before.arguments)
    assert again.relaunch_of == before.id


def test_relaunch_without_a_record_uses_what_the_backend_knows(runner, scheduler):
    scheduler.add("other-1", AppState.SUCCEEDED, 60, replicas=2)
    runner.relaunch("local_cwd://torchx/other-1")
    (request, _), = scheduler.seen  # fmt: skip
    assert (request.roles[0].args, request.roles[0].num_replicas) == (["train.py"], 2)
    assert request.name == "other"
    scheduler.add("nameless", AppState.SUCCEEDED, 60)
    runner.relaunch("local_cwd://torchx/nameless")
    assert scheduler.seen[1][0].name == "nameless"


def test_relaunch_of_nothing(runner):
    with pytest.raises(UnknownAppException):
        runner.relaunch("local_cwd://torchx/never-was")


def test_read_only_refuses_what_changes_jobs(journal, scheduler, app):
    runner = Runner(journal=journal, read_only=True, schedulers={"local_cwd": scheduler})
    scheduler.add("x-1", AppState.RUNNING, 1)
    for act in (
        lambda: runner.run(app, "local_cwd", {}),
        lambda: runner.relaunch("local_cwd://torchx/x-1"),
        lambda: runner.cancel("local_cwd://torchx/x-1"),
        lambda: runner.delete("local_cwd://torchx/x-1"),
    ):
        with pytest.raises(ReadOnlyError):
            act()
    assert (scheduler.seen, scheduler.cancelled) == ([], [])
    assert [one.app_handle for one in runner.list("local_cwd")] == ["local_cwd://torchx/x-1"]


def test_cancel_is_noted_before_the_backend_is_asked(runner, scheduler, journal, app):
    handle = runner.run(app, "local_cwd", {})
    runner.cancel(handle)
    assert scheduler.cancelled == ["train-1"]
    (record,) = journal.records()
    assert record.cancelled_at is not None
    assert record.cancelled_by


def test_delete_forgets_the_launch(runner, scheduler, journal, app):
    handle = runner.run(app, "local_cwd", {})
    runner.delete(handle)
    assert (scheduler.apps, journal.records()) == ({}, [])


def test_status_and_wait(runner, scheduler):
    scheduler.add("x-1", AppState.FAILED, 60, why="exit 1")
    status = runner.wait("local_cwd://torchx/x-1")
    assert (status.state, status.msg) == (AppState.FAILED, "exit 1")
    assert runner.status("local_cwd://torchx/gone") is None
    assert runner.wait("local_cwd://torchx/gone") is None


def test_a_run_belongs_to_its_parent_and_the_environment_s_wins(runner, scheduler, journal, app, monkeypatch):
    assert runner.run(app, "local_cwd", None, None, "parent-1") == "local_cwd://torchx/train-1"
    assert scheduler.seen[0][0].roles[0].env[ENV_PARENT_RUN_ID] == "parent-1"
    # A relaunch belongs to it too.
    assert journal.records()[0].app_def().roles[0].env == {ENV_PARENT_RUN_ID: "parent-1"}
    assert app.roles[0].env == {}
    monkeypatch.setenv(ENV_PARENT_RUN_ID, "parent-2")
    info = runner.dryrun(app, "local_cwd", parent_run_id="parent-1")
    assert info.app.roles[0].env[ENV_PARENT_RUN_ID] == "parent-2"


def test_run_with_dryrun_launches_nothing(runner, scheduler, app, journal):
    info = runner.run(app, "local_cwd", dryrun=True)
    assert isinstance(info, AppDryRunInfo)
    assert info._scheduler == "local_cwd"  # as TorchX's own code reads it
    assert (scheduler.seen, journal.records()) == ([], [])
    runner.read_only = True
    assert isinstance(runner.run(app, "local_cwd", dryrun=True), AppDryRunInfo)


@pytest.mark.parametrize("projects", [{"/a": ""}, {"/a": "", "/b": "lib: x"}])
def test_a_workspace_may_be_given_as_such(projects):
    workspace = Workspace(projects)
    assert Workspace.from_str(workspace_text(workspace)) == workspace
    assert (workspace_text(Workspace({})), workspace_text(""), workspace_text("/a")) == (None, None, "/a")


def test_lines_of_a_job_that_is_gone(runner, scheduler):
    def gone(app_id, *_, streams):
        raise JobNotFoundError(app_id, "local_cwd")

    scheduler.log_iter = gone
    with pytest.raises(UnknownAppException, match="torchx/gone is not known"):
        runner.log_lines("local_cwd://torchx/gone", "r")


def test_a_malformed_handle(runner):
    with pytest.raises(MalformedAppHandleException, match="<scheduler_backend>"):
        runner.describe("nonsense")


def test_retries_that_will_not_be_made_are_said_before_the_launch(runner, app):
    app.roles[0].max_retries = 1
    (warning,) = runner.preflight(app, "local_cwd", {})
    assert (warning.level, warning.hint) == ("warning", "max_retries=1 is ignored")


def test_a_batch_script_is_refused_where_none_can_run(runner):
    with pytest.raises(AppDefError, match="local_cwd runs no batch scripts"):
        runner.dryrun(AppDef("script", [BatchScript("#!/bin/sh\n").role()]), "local_cwd")


@pytest.mark.parametrize(
    ("levels", "chosen"),
    [(("ok", "ok"), "first"), (("error", "warning"), "second"), (("error", "error"), "first")],
)
def test_the_default_is_the_first_scheduler_that_can_be_used(monkeypatch, levels, chosen):
    schedulers = {"first": CannedScheduler(), "second": CannedScheduler()}
    runner = Runner(schedulers=schedulers)
    for method in ("scheduler_names", "watched_schedulers"):
        monkeypatch.setattr(runner, method, lambda: ["first", "second"])
    for name, level in zip(("first", "second"), levels, strict=True):
        schedulers[name].findings = [Finding("ok", "something"), Finding(level, "what was found")]
    assert runner.default_scheduler() == chosen


def test_a_scheduler_that_nobody_has_set_up_is_no_default(monkeypatch):
    schedulers = {"first": CannedScheduler(), "second": CannedScheduler()}
    runner = Runner(schedulers=schedulers)
    monkeypatch.setattr(runner, "scheduler_names", lambda: ["first", "second"])
    monkeypatch.setattr(runner, "watched_schedulers", lambda: ["first"])
    findings = {"first": Finding("error", "cannot be used"), "second": Finding("ok", "can be used")}
    for name, finding in findings.items():
        schedulers[name].findings = [finding]
    assert runner.default_scheduler() == "first"


def test_what_has_no_roles_is_named(runner, app):
    with pytest.raises(AppDefError, match="train has no roles"):
        runner.dryrun(AppDef("train", []), "local_cwd")
    with pytest.raises(AppDefError, match="the app has no roles"):
        runner.dryrun(AppDef("", []), "local_cwd")


class Busy(CannedScheduler):
    """Has apps of its own, uses something, and keeps too much."""

    def __init__(self) -> None:
        super().__init__()
        self.detached: list[str] = []
        self.ended = 0
        self.pruned: list[bool] = []
        self.acts: list[tuple[str, str, str]] = []
        self.told: list[Any] = []

    def own_app_ids(self):
        return ["a-1", "a-2"]

    def detach(self, app_id):
        self.detached.append(app_id)

    def end_own(self):
        self.ended += 1

    def act(self, app_id, action, value=""):
        self.acts.append((app_id, action, value))

    def actions(self, app_id):
        return [JobAction("hold", app_id)]

    def known_values(self):
        return {"queue": ["short"]}

    def run_beside(self, app_id, role_name, k, argv, timeout_s=1.0):
        return CommandOutput(0, f"{app_id} {role_name} {k} {argv} {timeout_s}".encode(), b"")

    def _log_lines(self, query):
        return [query]

    def subscribe(self, on_change):
        self.told.append(on_change)
        return lambda: self.told.remove(on_change)

    def usage(self, app_id):
        return [ReplicaUsage(app_id, 3, cpu=1.5)]

    def prune(self, *, dryrun=False):
        self.pruned.append(dryrun)
        return ["old-1"]


@pytest.fixture
def busy():
    return Busy()


@pytest.fixture
def busy_runner(busy, journal):
    return Runner(journal=journal, schedulers={"local_cwd": busy})


def test_jobs_that_end_with_this_process(busy_runner, busy):
    assert busy_runner.own_jobs() == ["local_cwd://torchx/a-1", "local_cwd://torchx/a-2"]
    busy_runner.detach("local_cwd://torchx/a-2")
    busy_runner.end_own_jobs()
    assert (busy.detached, busy.ended) == (["a-2"], 1)


def test_what_else_a_backend_can_do_with_a_job_unless_nothing_may_be_changed(busy_runner, busy):
    busy_runner.act("local_cwd://torchx/a-1", "hold")
    busy_runner.act("local_cwd://torchx/a-1", "priority", "9")
    busy_runner.read_only = True
    with pytest.raises(ReadOnlyError, match="The action hold"):
        busy_runner.act("local_cwd://torchx/a-1", "hold")
    assert busy.acts == [("a-1", "hold", ""), ("a-1", "priority", "9")]


def test_what_a_backend_tells_is_passed_on(busy_runner, busy):
    handle = "local_cwd://torchx/a-1"
    assert busy_runner.actions(handle) == [JobAction("hold", "a-1")]
    assert busy_runner.known_values("local_cwd") == {"queue": ["short"]}
    assert busy_runner.run_beside(handle, "r", 1, ["true"], 2.0).out == b"a-1 r 1 ['true'] 2.0"
    assert busy_runner.log_lines(handle, "r") == [LogQuery("a-1", "r")]
    assert busy_runner.describe_native(handle) == busy.describe_native("a-1")


def test_leaving_a_runner_closes_its_schedulers(scheduler, journal):
    closed = []
    scheduler.close = lambda: closed.append(scheduler)
    with Runner(journal=journal, schedulers={"local_cwd": scheduler}):
        assert closed == []
    assert closed == [scheduler]


def test_changes_are_told_until_nobody_wants_to_know(busy_runner, busy):
    unsubscribe = busy_runner.subscribe("local_cwd", print)
    assert busy.told == [print]
    unsubscribe()
    assert busy.told == []


def test_usage_where_it_is_measured(busy_runner, busy, monkeypatch):
    assert busy_runner.usage("local_cwd://torchx/a-1") == []
    monkeypatch.setattr(busy, "capabilities", Capabilities(usage=True))
    assert busy_runner.usage("local_cwd://torchx/a-1") == [ReplicaUsage("a-1", 3, cpu=1.5)]


def test_finished_jobs_are_removed_unless_nothing_may_be_changed(busy_runner, busy):
    assert busy_runner.prune("local_cwd", dryrun=True) == ["local_cwd://torchx/old-1"]
    assert busy_runner.prune("local_cwd") == ["local_cwd://torchx/old-1"]
    assert busy.pruned == [True, False]
    busy_runner.read_only = True
    assert busy_runner.prune("local_cwd", dryrun=True) == ["local_cwd://torchx/old-1"]
    with pytest.raises(ReadOnlyError, match="Removing finished jobs"):
        busy_runner.prune("local_cwd")
    with pytest.raises(ReadOnlyError, match="A shell"):
        busy_runner.shell_command("local_cwd://torchx/a-1", "r", 0)
    assert busy.pruned == [True, False, True]


def test_the_last_state_is_remembered_once(runner, scheduler, journal, app, monkeypatch):
    handle = runner.run(app, "local_cwd", {})
    runner.remember(handle, AppState.RUNNING, "it runs")
    (record,) = journal.records()
    assert (record.state, record.message, record.app_id) == ("RUNNING", "it runs", "train-1")
    assert record.state_at is not None
    with monkeypatch.context() as unasked:
        unasked.setattr(Journal, "find_all", lambda *_: pytest.fail("the journal was asked again"))
        runner.remember(handle, AppState.RUNNING, "it runs")
    assert journal.records() == [record]
    runner.remember(handle, AppState.RUNNING, "it runs well")
    assert journal.records()[0].message == "it runs well"
    runner.remember("local_cwd://torchx/never-was", AppState.RUNNING, "")


def test_what_answers_with_no_list_is_named(runner, scheduler, monkeypatch):
    for answer in ("nonsense", [1], None):
        monkeypatch.setattr(scheduler, "list", lambda cfg=None, answer=answer: answer)
        with pytest.raises(SchedulerError, match=r"local_cwd did not answer with a list of jobs, but with "):
            runner.list("local_cwd")


def test_rows_that_no_handle_can_name_are_left_out_and_times_that_are_none_are_unknown(runner, scheduler, monkeypatch):
    rows = [ListAppResponse(app_id, AppState.RUNNING, started_at=float("nan")) for app_id in ("a", "", "b\nc")]
    monkeypatch.setattr(scheduler, "list", lambda cfg=None: rows)
    (row,) = runner.list("local_cwd")
    assert (row.app_id, row.started_at) == ("a", None)
    never = [StateChange(AppState.RUNNING, float("nan"))]
    scheduler.described["a"] = DescribeAppResponse("a", AppState.RUNNING, started_at=float("nan"), timeline=never)
    described = runner.describe(row.app_handle)
    assert (described.started_at, described.timeline) == (None, [])


def test_retries_that_nobody_asked_for_are_not_spoken_of(runner, app):
    app.roles[0].max_retries = 0
    assert runner.preflight(app, "local_cwd", {}) == []


def test_lines_are_not_followed_unless_that_is_asked_for():
    query = LogQuery.parse("a", "r")
    assert (query.k, query.follow, query.stream, query.pattern) == (0, False, Stream.COMBINED, None)
    assert (query.since, query.until) == (None, None)
    asked = LogQuery.parse("a", "r", 3, "x+", datetime.fromtimestamp(5), datetime.fromtimestamp(7), True, "stdout")
    assert (asked.k, asked.follow, asked.stream, asked.since, asked.until) == (3, True, Stream.STDOUT, 5.0, 7.0)
    assert asked.pattern is not None
    assert asked.pattern.search("xx")
    with pytest.raises(ValueError, match="not a regular expression: "):
        LogQuery.parse("a", "r", regex="(")
    with pytest.raises(ValueError, match=r"there is no stream both\. Valid: stdout, stderr"):
        LogQuery.parse("a", "r", streams="both")


def test_of_a_long_journal_little_is_read_for_the_state_of_a_job_of_others(journal, app, monkeypatch):
    for number in range(60):
        journal.record_intent(app, "local_cwd", "torchx", {}, expected_app_id=f"job{number}")
    looks, read = itertools.count(), []
    monkeypatch.setattr(launch_journal, "read_file", lambda path, limit: read.append(path) or read_file(path, limit))
    # To look at the clock takes some time.
    monkeypatch.setattr(time, "monotonic", lambda: next(looks) / 200)
    Runner(journal=Journal(journal.folder)).remember("local_cwd://torchx/of-others", AppState.RUNNING, "")
    assert 0 < len(read) < 30
