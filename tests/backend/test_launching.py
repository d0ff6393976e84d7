"""Workspaces are built in the midst of a launch, never for a preview, in TorchX's order."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from backend.tables import TABLES
from support.canned import CannedScheduler

from torchx_tui.backends.launcher import earlier_launch
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.shared.progress import Progress, current_progress
from torchx_tui.backends.workspace import WorkspaceMixin
from torchx_tui.specs.batch_script import BatchScript
from torchx_tui.specs.errors import AppDefError, LaunchCancelledError, SchedulerError
from torchx_tui.specs.roles import AppDef, AppDryRunInfo, Role
from torchx_tui.specs.status import AppState


class Builder(WorkspaceMixin[Any], CannedScheduler):
    """Keeps the steps of a launch, in order."""

    def __init__(self, journal):
        super().__init__()
        self.journal = journal
        self.done = []
        self.failure = None
        self.dry_runs = 0

    def _pre_build_validate(self, app, scheduler, cfg):
        self.done.append(f"check {scheduler} {app.roles[0].image}")

    def _validate(self, app, scheduler, cfg):
        self.done.append(f"check again {scheduler} {app.roles[0].image}")

    def build_workspace_and_update_role(self, role, workspace, cfg):
        assert len(self.journal.records()) == 1
        self.done.append(f"build {workspace} on {role.image} {cfg['log_dir']}")
        for step in (1, 2):
            current_progress().report(f"step {step} of 2")
        if self.failure:
            raise self.failure
        role.image = "built"

    def _submit_dryrun(self, app, cfg):
        self.dry_runs += 1
        self.done.append(f"request {app.roles[0].image}")
        request = SimpleNamespace(app=app, app_id=f"app-{self.dry_runs}")
        return AppDryRunInfo(request, lambda request: f"image: {request.app.roles[0].image}\n")

    def _check_request(self, dryrun_info):
        self.done.append("ask the backend")

    def schedule(self, dryrun_info):
        request = dryrun_info.request
        self.done.append(f"launch {request.app.roles[0].image}")
        assert not request.app.roles[0].workspace
        (record,) = self.journal.records()
        assert record.expected_app_id == request.app_id
        self.add(request.app_id, AppState.RUNNING, 1)
        return request.app_id


class Wrapping(Builder):
    """Changes its request in its dry run, as schedulers of others may."""

    def submit_dryrun(self, app, cfg):
        info = AppDryRunInfo(super().submit_dryrun(app, cfg).request, lambda request: "wrapped\n")
        self.done.append(f"wrap {app.roles[0].image}")
        return info


@pytest.fixture
def scheduler(journal):
    return Builder(journal)


@pytest.fixture
def app():
    return AppDef("train", [Role("trainer", "base", entrypoint="python3")])


CHECKED = ["check local_cwd base", "check again local_cwd base", "request base", "ask the backend"]
BUILT = [
    "build /project on base /logs",
    "check again local_cwd built",
    "request built",
    "ask the backend",
    "launch built",
]


def test_a_preview_builds_nothing(runner, scheduler, app):
    text = str(runner.dryrun(app, "local_cwd", {}, "/home/me/project"))
    assert text == "# role trainer: its workspace is built first, of /home/me/project on top of base\nimage: base\n"
    assert scheduler.done == CHECKED
    assert not app.roles[0].workspace


def test_a_launch_builds_first_and_keeps_the_workspace(runner, scheduler, app, journal):
    reports = []
    handle = runner.run(app, "local_cwd", {"log_dir": "/logs"}, "/project", progress=Progress(reports.append))
    assert handle == "local_cwd://torchx/app-2"
    assert reports == ["step 1 of 2", "step 2 of 2"]
    assert scheduler.done == CHECKED + BUILT
    assert (app.roles[0].image, app.roles[0].workspace) == ("base", None)
    # The record has what a relaunch builds anew.
    (record,) = journal.records()
    assert (record.workspace, record.app_def().roles[0].image) == ("/project", "base")
    assert earlier_launch("", record, runner.job(handle).describe)[3] == "/project"


def test_without_a_workspace_there_is_one_request(runner, scheduler, app):
    runner.run(app, "local_cwd", {})
    assert scheduler.done == [*CHECKED, "launch base"]


@pytest.mark.parametrize(
    ("failure", "error", "state", "message"),
    [
        (None, LaunchCancelledError, "CANCELLED", "ended before anything ran"),
        (SchedulerError("no space"), SchedulerError, "FAILED", "no space"),
    ],
)
def test_a_build_may_be_cancelled_or_fail(runner, scheduler, app, journal, failure, error, state, message):
    scheduler.failure = failure
    progress = Progress(lambda text: failure or progress.cancel())
    with pytest.raises(error):
        runner.run(app, "local_cwd", {}, "/project", progress=progress)
    (record,) = journal.records()
    assert (record.state, record.app_id, message in record.message) == (state, "", True)
    assert not any(step.startswith("launch") for step in scheduler.done)


def test_an_invalid_app_is_refused_before_a_build(runner, scheduler, app, journal):
    scheduler._pre_build_validate = Mock(side_effect=AppDefError("not here"))
    with pytest.raises(AppDefError, match="not here"):
        runner.run(app, "local_cwd", {}, "/project")
    assert (journal.records(), scheduler.done) == ([], [])


def test_launches_call_an_overridden_dry_run(journal, app):
    scheduler = Wrapping(journal)
    runner = Runner(journal=journal, schedulers={"local_cwd": scheduler})
    assert str(runner.dryrun(app, "local_cwd")) == "wrapped\n"
    scheduler.done.clear()
    runner.run(app, "local_cwd", {}, "/project")
    steps = [step for step in scheduler.done if step.startswith(("wrap", "launch"))]
    assert steps == ["wrap base", "wrap built", "launch built"]


@pytest.mark.parametrize(("role", "note"), TABLES["launching"]["dollars"])
def test_a_dry_run_notes_double_dollars(runner, role, note):
    app = AppDef("a", [Role("r", "base", entrypoint="sh", **role)])
    assert str(runner.dryrun(app, "local_cwd")) == f"{note}image: base\n"


def test_double_dollars_of_a_batch_script_are_kept(runner, scheduler):
    scheduler.capabilities = replace(scheduler.capabilities, batch_scripts=True)
    assert str(runner.dryrun(AppDef("a", [BatchScript("#!/bin/sh\necho $$\n").role()]), "local_cwd")) == "image: \n"
