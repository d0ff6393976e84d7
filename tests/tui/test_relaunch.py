"""Relaunch as it was: at once where nothing has changed, after a question where the world has."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from support.canned_launches import CannedLaunches
from support.component_files import ComponentFile
from support.dashboard import make_app
from support.git import WorkTree
from support.screens import jobs_of
from support.waiting import NEVER, wait_until
from textual.events import Key
from textual.widgets import Button

from torchx_tui.backends.history import provenance
from torchx_tui.backends.history.journal import LaunchRecord
from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.backends.history.provenance import Changed
from torchx_tui.backends.types import DescribeAppResponse
from torchx_tui.settings.config import Profile, Settings
from torchx_tui.settings.launch_defaults import config_now
from torchx_tui.specs.errors import SchedulerError, UnknownAppException
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import MISSING
from torchx_tui.tui.job.relaunch import summed_up
from torchx_tui.tui.launch.foreign_job import foreign_job
from torchx_tui.tui.ui.dialog import AskDialog


@pytest.fixture
def tree(tmp_path, monkeypatch):
    made = WorkTree(tmp_path / "project")
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def scheduler():
    return CannedLaunches()


@pytest.fixture
def app(scheduler, tree, tmp_path, monkeypatch):
    made = make_app(scheduler, tmp_path)
    monkeypatch.setattr(made.runner, "scheduler_names", lambda: ["local_cwd"])
    # What git does not tell soon is not compared.
    monkeypatch.setattr(provenance, "GIT_TIMEOUT_S", NEVER)
    return made


def launch(app, count: int = 1, **origin) -> list[LaunchRecord]:
    """Launch jobs, and wait until the world of each is noted."""
    runner = app.runner
    made = AppDef("job", [Role("r", "one:1", entrypoint="true")])
    handles = [runner.run(made, "local_cwd", {}, origin=LaunchOrigin("utils.echo", **origin)) for _ in range(count)]

    def noted():
        records = [runner.journal.find(handle) for handle in handles]
        return records if all(record is not None and record.world for record in records) else None

    return wait_until(noted, "the notes")


async def test_an_unchanged_job_is_launched_at_once(app, scheduler):
    (record,) = launch(app)
    async with jobs_of(app) as table:
        await table.press("r", shows="Launched job-0 again, as it was")
        await table.has(2)
        assert app.runner.journal.records()[0].relaunch_of == record.id


@pytest.mark.parametrize("is_changed", [False, True])
async def test_relaunch_key_pressed_twice_launches_once(app, tree, is_changed):
    launch(app)
    if is_changed:
        tree.write("train.py", "lr = 0.2\n")
    async with jobs_of(app) as table:
        # The launch is over after the first turn: the key works again.
        for presses, count in ((2, 2), (1, 3)):
            for _ in range(presses):
                app.post_message(Key("r", "r"))
            if is_changed:
                await table.dialog(AskDialog)
                await table.press("y")
            await table.has(count)
            await table.shows("Launched job-0 again")
            assert not isinstance(app.screen, AskDialog)


async def test_a_job_without_notes_is_launched_without_a_claim(app, tree):
    (record,) = launch(app)
    app.runner.journal.update(record, world={})
    tree.write("train.py", "lr = 0.2\n")
    async with jobs_of(app) as table:
        await table.press("r", until=lambda: table.message().endswith("Launched job-0 again"))


async def test_changes_are_shown_before_anything_is_launched(app, scheduler, tree):
    (record,) = launch(app, arguments={"msg": "hello"})
    then = tree.git("rev-parse", "HEAD")[:10]
    tree.write("train.py", "lr = 0.2\n")
    now = tree.commit()[:10]
    async with jobs_of(app) as table:
        dialog = await table.dialog(AskDialog, "r")
        assert f"git commit\n  - {then}\n  + {now}" in table.dialog_text()
        # The harmless button has the focus; nothing but the buttons takes it.
        for number in (0, 1, 2, 0):
            assert dialog.focused is dialog.query(Button)[number]
            await table.press("tab")
        await table.back("shift+tab", "enter")
        assert len(scheduler.apps) == 1
        await table.dialog(AskDialog, "r")
        launching = await table.edit()
        await launching.open(type(table.screen), "escape")
        await table.dialog(AskDialog, "r")
        await table.press("y", shows="Launched job-0 again")
        assert len(scheduler.apps) == 2
        assert app.runner.journal.records()[0].relaunch_of == record.id


async def test_many_are_asked_about_once_with_a_sum(app, scheduler, tree):
    launch(app, 2)
    tree.write("train.py", "lr = 0.2\n")
    tree.commit()
    launch(app)
    async with jobs_of(app, rows=3) as table:
        await table.press("asterisk")
        dialog = await table.dialog(AskDialog, "r")
        assert dialog.heading() == "Launch 3 jobs again?"
        assert "2 of them have changes since their launch" in table.dialog_text()
        assert "git commit   2 jobs" in table.dialog_text()
        await table.press("e", "y", "enter")
        assert app.screen is dialog
        await table.press("3", "enter", shows="Launched 3 jobs again")
        assert len(scheduler.apps) == 6


async def test_many_unchanged_jobs_ask_for_their_count(app, scheduler):
    launch(app, 3)
    async with jobs_of(app, rows=3) as table:
        await table.press("asterisk")
        await table.dialog(AskDialog, "r")
        await table.shows("Nothing has changed.", "Type 3 to launch them", on="dialog_text")
        await table.back("escape")
        assert (table.said(), len(scheduler.apps)) == ("✓ Nothing launched", 3)
        await table.dialog(AskDialog, "r")
        await table.press("3", "enter", shows="Launched 3 jobs again")
        assert len(scheduler.apps) == 6


async def test_a_fault_of_the_scheduler_is_shown(app, scheduler, monkeypatch):
    launch(app)

    def refuse(dryrun_info):
        raise SchedulerError("the disk is full")

    monkeypatch.setattr(scheduler, "schedule", refuse)
    monkeypatch.setattr(app.runner, "changed_since", lambda *_: 1 / 0)
    async with jobs_of(app) as table:
        await table.press("r", shows="job-0: the disk is full")


async def test_a_relaunch_outlives_its_screen(app):
    launch(app)
    async with jobs_of(app) as table:
        await table.job()
        await table.press("r", "escape", shows="Launched job-0 again")


def test_the_most_frequent_change_comes_first():
    one, other = Changed("git commit", "a", "b"), Changed("image x", "a", "b")
    assert summed_up({"h1": [other], "h2": [one, other], "h3": [one], "h4": [one]}) == [(one, 3), (other, 2)]


# Config


@pytest.fixture
def with_config(app, tree):
    """Return a launch that had its values of `.torchxconfig`."""
    tree.write(".torchxconfig", "[local_cwd]\nlog_dir = /logs\n\n[component:utils.echo]\nmsg = hi\nnot_there = 1\n")
    tree.commit()
    given = config_now(Settings(), "", LaunchRecord("1", 0.0, "local_cwd", "s", {}, component="utils.echo"), app.runner)
    assert given == {"log_dir": "/logs", "component.msg": "hi"}
    return launch(app, config=given)[0]


async def test_equal_config_is_no_change(app, with_config):
    async with jobs_of(app) as table:
        await table.press("r", shows="again, as it was")


async def test_changed_config_is_shown(app, with_config, tree):
    tree.write(".torchxconfig", "[local_cwd]\nlog_dir = /other\n\n[component:utils.echo]\nmsg = hi\n")
    async with jobs_of(app) as table:
        await table.dialog(AskDialog, "r")
        assert "config: log_dir\n  - /logs\n  + /other" in table.dialog_text()
        assert "config: msg" not in table.dialog_text()


def test_a_launch_is_compared_with_its_own_profile(app, with_config):
    prod = Profile(scheduler="local_cwd", components={"utils.echo": {"msg": "hello"}})
    settings = replace(Settings(), profiles={"prod": prod, "other": Profile()})
    of_profile = {"scheduler": "local_cwd", "log_dir": "/logs", "component.msg": "hello"}
    record = replace(with_config, config=of_profile, profile="prod")
    assert config_now(settings, "other", record, app.runner) == of_profile
    assert config_now(settings, "prod", replace(record, profile=None), app.runner) == of_profile
    assert config_now(settings, "prod", replace(record, profile=""), app.runner) == with_config.config
    assert app.runner.changed_since(record, of_profile) == []


async def test_a_job_whose_component_is_gone_is_launched_again(app, tree):
    file = ComponentFile(tree.folder / "jobs.py")
    file.write('def job() -> AppDef:\n    """Do."""\n')
    tree.commit()
    (record,) = launch(app)
    app.runner.journal.update(record, component="jobs.py:job")
    file.path.unlink()
    tree.git("update-index", "--skip-worktree", "jobs.py")
    async with jobs_of(app) as table:
        await table.press("r", shows="Launched job-0 again")


@pytest.mark.parametrize(
    ("role", "unknown"),
    [
        (Role("r", "one:1", entrypoint="true"), []),
        (Role("r", "one:1", args=["serve"]), []),
        (Role("r", "one:1", entrypoint=MISSING, args=["serve"]), []),
        (Role("r", "one:1", entrypoint=MISSING), ["entrypoint"]),
        (Role("r", "one:1"), ["entrypoint"]),
        (Role("r", "", entrypoint="true"), ["image"]),
        (Role("r", ""), ["image", "entrypoint"]),
    ],
)
def test_missing_values_of_a_described_role_are_unknown(role, unknown):
    answers = {"local_cwd://torchx/job-1": DescribeAppResponse("job-1", roles=[role])}
    runner: Any = SimpleNamespace(job=lambda handle: SimpleNamespace(describe=lambda: answers.get(handle)))
    job = foreign_job(runner, "local_cwd://torchx/job-1")
    assert (job.app.name, job.scheduler, job.unknown) == ("job-1", "local_cwd", {"r": unknown})
    with pytest.raises(UnknownAppException):
        foreign_job(runner, "local_cwd://torchx/job-2")
    answers["local_cwd://torchx/job-3"] = DescribeAppResponse("job-3")
    with pytest.raises(SchedulerError, match="its command or its batch script is unknown"):
        foreign_job(runner, "local_cwd://torchx/job-3")
