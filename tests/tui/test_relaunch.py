"""Relaunch as it was: at once where nothing has changed, after a question where the world has."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.component_files import ComponentFile
from support.dashboard import make_app, until
from support.git import WorkTree
from support.imaged import Imaged
from support.waiting import NEVER, wait_until
from textual.widgets import Button

from torchx_tui.backends.history import provenance
from torchx_tui.backends.history.journal import LaunchRecord
from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.backends.history.provenance import Changed
from torchx_tui.backends.types import DescribeAppResponse
from torchx_tui.settings.config import Profile, Settings
from torchx_tui.settings.launch_defaults import config_now
from torchx_tui.specs import MISSING, AppDef, Role, SchedulerError, UnknownAppException
from torchx_tui.tui.job.relaunch import RelaunchDialog, summed_up
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch.foreign_job import foreign_job
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.ui.bars import StatusLine


@pytest.fixture
def tree(tmp_path, monkeypatch):
    made = WorkTree(tmp_path / "project")
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def scheduler():
    return Imaged()


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


async def jobs_of(pilot, app, count: int) -> JobsScreen:
    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count == count, "the jobs")
    return app.screen


async def dialog_of(pilot, app) -> RelaunchDialog:
    await until(pilot, lambda: isinstance(app.screen, RelaunchDialog) and app.screen.query(Button), "the dialog")
    return app.screen


def text_of(dialog: RelaunchDialog) -> str:
    return "\n".join(str(static.render()) for static in dialog.query("Static"))


def status(app) -> str:
    return app.screen.query_one(StatusLine).left.plain


async def test_where_nothing_has_changed_it_is_launched_at_once(app, scheduler):
    (record,) = launch(app)
    async with app.run_test(size=(120, 40)) as pilot:
        await jobs_of(pilot, app, 1)
        await pilot.press("r")
        await until(pilot, lambda: "Launched job-0 again, as it was" in status(app))
        await jobs_of(pilot, app, 2)
        assert app.runner.journal.records()[0].relaunch_of == record.id


@pytest.mark.parametrize("is_changed", [False, True])
async def test_relaunch_key_pressed_twice_launches_once(app, scheduler, tree, is_changed):
    launch(app)
    if is_changed:
        tree.write("train.py", "lr = 0.2\n")
    async with app.run_test(size=(120, 40)) as pilot:
        await jobs_of(pilot, app, 1)
        await pilot.press("r", "r")
        if is_changed:
            await dialog_of(pilot, app)
            await pilot.press("y")
        await until(pilot, lambda: "Launched job-0 again" in status(app))
        await jobs_of(pilot, app, 2)
        assert not isinstance(app.screen, RelaunchDialog)
        # The launch is over: the key works again.
        await pilot.press("r")
        if is_changed:
            await dialog_of(pilot, app)
            await pilot.press("y")
        await jobs_of(pilot, app, 3)


async def test_a_job_of_which_nothing_was_noted_is_launched_and_nothing_is_claimed(app, scheduler, tree):
    (record,) = launch(app)
    app.runner.journal.update(record, world={})
    tree.write("train.py", "lr = 0.2\n")
    async with app.run_test(size=(120, 40)) as pilot:
        await jobs_of(pilot, app, 1)
        await pilot.press("r")
        await until(pilot, lambda: status(app).endswith("Launched job-0 again"))


async def test_what_has_changed_is_shown_and_nothing_launched_before_the_answer(app, scheduler, tree):
    scheduler.digests = {"one:1": "sha256:" + "a" * 64}
    (record,) = launch(app)
    then = tree.git("rev-parse", "HEAD")[:10]
    tree.write("train.py", "lr = 0.2\n")
    now = tree.commit()[:10]
    scheduler.digests = {"one:1": "sha256:" + "b" * 64}
    async with app.run_test(size=(120, 40)) as pilot:
        await jobs_of(pilot, app, 1)
        await pilot.press("r")
        dialog = await dialog_of(pilot, app)
        text = text_of(dialog)
        assert f"git commit\n  - {then}\n  + {now}, 1 file differs" in text
        assert f"image one:1\n  - sha256:{'a' * 12}\n  + sha256:{'b' * 12}" in text
        # The harmless button has the focus.
        assert dialog.focused is dialog.query(Button).first()
        # Nothing but the buttons takes it.
        for button in ("confirm", "keep"):
            await pilot.press("tab")
            assert dialog.focused.id == button
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))
        assert len(scheduler.apps) == 1
        await pilot.press("r")
        await dialog_of(pilot, app)
        await pilot.press("y")
        await until(pilot, lambda: "Launched job-0 again" in status(app))
        assert len(scheduler.apps) == 2
        assert app.runner.journal.records()[0].relaunch_of == record.id


async def test_edit_is_offered_instead(app, tree):
    launch(app, arguments={"msg": "hello"})
    tree.commit()
    async with app.run_test(size=(120, 40)) as pilot:
        await jobs_of(pilot, app, 1)
        await pilot.press("r")
        await dialog_of(pilot, app)
        await pilot.press("e")
        await until(
            pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.editor.model is not None, "the form"
        )


async def test_many_are_asked_about_once_with_the_changes_summed_up(app, scheduler, tree):
    launch(app, 2)
    tree.write("train.py", "lr = 0.2\n")
    tree.commit()
    launch(app)
    async with app.run_test(size=(120, 40)) as pilot:
        await jobs_of(pilot, app, 3)
        await pilot.press("asterisk", "r")
        dialog = await dialog_of(pilot, app)
        assert dialog.heading() == "Launch 3 jobs again?"
        assert "2 of them have changes since their launch" in text_of(dialog)
        assert "git commit   2 jobs" in text_of(dialog)
        await pilot.press("e")
        assert app.screen is dialog
        await pilot.press("y")
        await until(pilot, lambda: "Launched 3 jobs again" in status(app))
        assert len(scheduler.apps) == 6


async def test_many_that_are_as_they_were_are_launched_at_once(app, scheduler):
    launch(app, 3)
    async with app.run_test(size=(120, 40)) as pilot:
        await jobs_of(pilot, app, 3)
        await pilot.press("asterisk", "r")
        await until(pilot, lambda: "Launched 3 jobs again" in status(app))
        assert len(scheduler.apps) == 6


async def test_what_is_wrong_with_the_scheduler_is_said_by_the_launch(app, scheduler, monkeypatch):
    launch(app)

    def refuse(dryrun_info):
        raise SchedulerError("the disk is full")

    monkeypatch.setattr(scheduler, "schedule", refuse)
    monkeypatch.setattr(app.runner, "changed_since", lambda *_: 1 / 0)
    async with app.run_test(size=(120, 40)) as pilot:
        await jobs_of(pilot, app, 1)
        await pilot.press("r")
        await until(pilot, lambda: "job-0: the disk is full" in status(app))


async def test_it_is_launched_although_its_screen_was_left_meanwhile(app, scheduler):
    launch(app)
    async with app.run_test(size=(120, 40)) as pilot:
        jobs = await jobs_of(pilot, app, 1)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is not jobs)
        await pilot.press("r", "escape")
        await until(pilot, lambda: "Launched job-0 again" in status(app))


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


async def test_config_that_gives_the_same_is_no_change(app, with_config):
    async with app.run_test(size=(120, 40)) as pilot:
        await jobs_of(pilot, app, 1)
        await pilot.press("r")
        await until(pilot, lambda: "again, as it was" in status(app))


async def test_config_that_gives_something_else_is_shown(app, with_config, tree):
    tree.write(".torchxconfig", "[local_cwd]\nlog_dir = /other\n\n[component:utils.echo]\nmsg = hi\n")
    async with app.run_test(size=(120, 40)) as pilot:
        await jobs_of(pilot, app, 1)
        await pilot.press("r")
        text = text_of(await dialog_of(pilot, app))
        assert "config: log_dir\n  - /logs\n  + /other" in text
        assert "config: msg" not in text


def test_a_launch_of_another_profile_is_compared_with_that_one(app, with_config):
    prod = Profile(scheduler="local_cwd", components={"utils.echo": {"msg": "hello"}})
    settings = replace(Settings(), profiles={"prod": prod, "other": Profile()})
    of_profile = {"scheduler": "local_cwd", "log_dir": "/logs", "component.msg": "hello"}
    record = replace(with_config, config=of_profile)
    assert config_now(settings, None, record, app.runner) == of_profile
    assert app.runner.changed_since(record, of_profile) == []


async def test_a_component_that_is_gone_keeps_nobody_from_relaunching(app, tree):
    file = ComponentFile(tree.folder / "jobs.py")
    file.write('def job() -> AppDef:\n    """Do."""\n')
    tree.commit()
    (record,) = launch(app)
    app.runner.journal.update(record, component="jobs.py:job")
    file.path.unlink()
    tree.git("update-index", "--skip-worktree", "jobs.py")
    async with app.run_test(size=(120, 40)) as pilot:
        await jobs_of(pilot, app, 1)
        await pilot.press("r")
        await until(pilot, lambda: "Launched job-0 again" in status(app))


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
def test_what_a_backend_does_not_tell_of_a_role_is_unknown(role, unknown):
    answers = {"local_cwd://torchx/job-1": DescribeAppResponse("job-1", roles=[role])}
    job = foreign_job(SimpleNamespace(describe=answers.get), "local_cwd://torchx/job-1")  # type: ignore[arg-type]
    assert (job.app.name, job.scheduler, job.unknown) == ("job-1", "local_cwd", {"r": unknown})
    with pytest.raises(UnknownAppException):
        foreign_job(SimpleNamespace(describe=answers.get), "local_cwd://torchx/job-2")  # type: ignore[arg-type]
    answers["local_cwd://torchx/job-3"] = DescribeAppResponse("job-3")
    with pytest.raises(SchedulerError, match="its program or batch script is unknown"):
        foreign_job(SimpleNamespace(describe=answers.get), "local_cwd://torchx/job-3")  # type: ignore[arg-type]
