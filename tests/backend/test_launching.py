"""Workspaces are built in the midst of a launch, never for a preview, in TorchX's order."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from support.canned import CannedScheduler

from torchx_tui.backends.launcher import earlier_launch
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.shared.progress import Progress, current_progress
from torchx_tui.backends.workspace import WorkspaceMixin
from torchx_tui.specs import AppDef, AppDefError, AppDryRunInfo, AppState, LaunchCancelledError, Role, SchedulerError
from torchx_tui.specs.batch_script import BatchScript


class Builder(WorkspaceMixin[Any], CannedScheduler):
    """Notes what is done, in order."""

    def __init__(self, journal):
        super().__init__()
        self.journal = journal
        self.done: list[str] = []
        self.failure: Exception | None = None
        self.dry_runs = 0

    def _pre_build_validate(self, app, scheduler, cfg):
        self.done.append(f"check {scheduler} {app.roles[0].image}")

    def _validate(self, app, scheduler, cfg):
        self.done.append(f"check again {scheduler} {app.roles[0].image}")

    def build_workspace_and_update_role(self, role, workspace, cfg):
        assert len(self.journal.records()) == 1
        self.done.append(f"build {workspace} on {role.image} {cfg['log_dir']}")
        current_progress().report("step 1 of 2")
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
        self.done.append(f"launch {dryrun_info.request.app.roles[0].image}")
        assert not dryrun_info.request.app.roles[0].workspace
        (record,) = self.journal.records()
        assert record.expected_app_id == dryrun_info.request.app_id
        self.add(dryrun_info.request.app_id, AppState.RUNNING, 1)
        return dryrun_info.request.app_id


@pytest.fixture
def scheduler(journal):
    return Builder(journal)


@pytest.fixture
def app():
    return AppDef("train", [Role("trainer", "base", entrypoint="python3")])


def test_a_preview_builds_nothing_and_says_what_would_be_built(runner, scheduler, app):
    text = str(runner.dryrun(app, "local_cwd", {}, "/home/me/project"))
    assert text == "# role trainer: its workspace is built first, of /home/me/project on top of base\nimage: base\n"
    assert scheduler.done == ["check local_cwd base", "check again local_cwd base", "request base", "ask the backend"]
    assert not app.roles[0].workspace


def test_a_launch_builds_first_and_asks_with_the_built_image(runner, scheduler, app):
    said = []
    handle = runner.run(app, "local_cwd", {"log_dir": "/logs"}, "/project", progress=Progress(said.append))
    assert handle == "local_cwd://torchx/app-2"
    assert said == ["step 1 of 2"]
    assert scheduler.done == [
        *("check local_cwd base", "check again local_cwd base", "request base", "ask the backend"),
        "build /project on base /logs",
        *("check again local_cwd built", "request built", "ask the backend", "launch built"),
    ]
    assert (app.roles[0].image, app.roles[0].workspace) == ("base", None)


def test_the_journal_keeps_what_was_asked_for_to_build_it_anew(runner, app, journal):
    runner.run(app, "local_cwd", {}, "/project")
    (record,) = journal.records()
    assert (record.workspace, record.app_def().roles[0].image) == ("/project", "base")
    assert earlier_launch("", record, runner.describe).workspace == "/project"


def test_without_a_workspace_nothing_is_built_and_asked_for_once(runner, scheduler, app):
    runner.run(app, "local_cwd", {})
    assert scheduler.done == [
        "check local_cwd base", "check again local_cwd base", "request base", "ask the backend", "launch base",
    ]  # fmt: skip


def test_a_cancelled_launch_was_cancelled_not_failed(runner, scheduler, app, journal):
    progress = Progress(lambda text: progress.cancel())

    def report_twice(role, workspace, cfg):
        current_progress().report("one")
        current_progress().report("two")

    scheduler.build_workspace_and_update_role = report_twice
    with pytest.raises(LaunchCancelledError):
        runner.run(app, "local_cwd", {}, "/project", progress=progress)
    (record,) = journal.records()
    assert (record.state, record.app_id) == ("CANCELLED", "")
    assert "ended before anything ran" in record.message


def test_a_build_that_fails_is_a_failed_launch(runner, scheduler, app, journal):
    scheduler.failure = SchedulerError("no space")
    with pytest.raises(SchedulerError, match="no space"):
        runner.run(app, "local_cwd", {}, "/project")
    (record,) = journal.records()
    assert (record.state, record.message) == ("FAILED", "no space")
    assert not any(step.startswith("launch") for step in scheduler.done)


def test_what_the_scheduler_refuses_is_refused_before_anything_is_built(runner, scheduler, app, journal):
    def refuse(app, scheduler, cfg):
        raise AppDefError("not here")

    scheduler._pre_build_validate = refuse
    with pytest.raises(AppDefError, match="not here"):
        runner.run(app, "local_cwd", {}, "/project")
    assert journal.records() == []


class Wrapping(Builder):
    """Makes its request where it is asked for one, as schedulers of others may."""

    def submit_dryrun(self, app, cfg):
        info = AppDryRunInfo(super().submit_dryrun(app, cfg).request, lambda request: "wrapped\n")
        self.done.append(f"wrap {app.roles[0].image}")
        return info


def test_launches_call_an_overridden_dry_run(journal, app):
    scheduler = Wrapping(journal)
    runner = Runner(journal=journal, schedulers={"local_cwd": scheduler})
    assert str(runner.dryrun(app, "local_cwd")) == "wrapped\n"
    scheduler.done.clear()
    runner.run(app, "local_cwd", {}, "/project")
    assert [step for step in scheduler.done if "wrap" in step or "launch" in step] == [
        "wrap base", "wrap built", "launch built",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("role", "note"),
    [
        ({"args": ["-c", "echo $$"]}, "# role r: $$ in its args becomes $: write $$$$ for $$\n"),
        (
            {"env": {"A": "$$"}, "metadata": {"k": [{"v": "$$x"}]}},
            "# role r: $$ in its env and metadata becomes $: write $$$$ for $$\n",
        ),
        ({"args": ["$HOME ${app_id} $${MASTER:=localhost}"], "env": {"A": "$"}}, ""),
    ],
)
def test_a_dry_run_notes_double_dollars(runner, scheduler, role, note):
    app = AppDef("a", [Role("r", "base", entrypoint="sh", **role)])
    assert str(runner.dryrun(app, "local_cwd")) == f"{note}image: base\n"


def test_double_dollars_of_a_batch_script_are_kept(runner, scheduler):
    scheduler.capabilities = replace(scheduler.capabilities, batch_scripts=True)
    app = AppDef("a", [BatchScript("#!/bin/sh\necho $$\n").role()])
    assert str(runner.dryrun(app, "local_cwd")) == "image: \n"
