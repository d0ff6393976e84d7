"""A field with several values launches each: confirmed by count, capped, with a group in common."""

from pathlib import Path

import pytest
from support.component_files import ComponentFile
from support.dashboard import until
from support.launching import (
    LaunchingScheduler,
    form_of,
    launching_app,
    preview,
    ready,
    row_of,
    status,
    type_into,
    words,
)

from torchx_tui.backends.shared.progress import Progress
from torchx_tui.components import describe
from torchx_tui.settings.config import LaunchSettings, Settings
from torchx_tui.specs import SchedulerError
from torchx_tui.tui.jobs.filter import parse_filter
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch.form_model import FormModel
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.launch.sweep_dialog import SweepDialog
from torchx_tui.tui.launch.work import launch_all

JOB = '''
def job(data: str, lr: float = 0.1, batch: int = 32, flag: bool = False) -> AppDef:
    """Train."""
    return AppDef("job", [Role("r", "", entrypoint="true", args=[data, str(lr), str(batch), str(flag)])])
'''


@pytest.fixture
def scheduler():
    return LaunchingScheduler()


@pytest.fixture
def app(scheduler, tmp_path, monkeypatch):
    made = launching_app(scheduler, tmp_path, monkeypatch, Settings(launch=LaunchSettings(most_of_a_sweep=6)))
    ComponentFile(Path("jobs.py")).write(JOB)
    return made


async def swept(pilot, app, **texts: str) -> LaunchScreen:
    screen = await form_of(pilot, app, "jobs.py:job")
    for name, text in {"data": "corpus", **texts}.items():
        await type_into(pilot, screen, name, text)
    await ready(pilot, screen)
    return screen


async def asked(pilot, app) -> SweepDialog:
    await pilot.press("ctrl+s")
    await until(pilot, lambda: isinstance(app.screen, SweepDialog), "the question")
    return app.screen


async def test_the_product_is_launched_once_its_count_was_typed(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await swept(pilot, app, lr="0.1, 0.01", batch="16..64*2")
        assert "ctrl+s submits 6 jobs" in words(screen)
        await until(pilot, lambda: "the first of the sweep: lr=0.1 batch=16" in preview(screen), "the request")
        await asked(pilot, app)
        await pilot.press("5", "enter")
        assert isinstance(app.screen, SweepDialog)
        assert scheduler.launched == []
        await pilot.press("backspace", "6", "enter")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and len(app.screen.table.rows) == 6, "the jobs")
        launched = [(made.roles[0].args[1], made.roles[0].args[2]) for made in scheduler.launched]
        assert launched == [(lr, batch) for lr in ("0.1", "0.01") for batch in ("16", "32", "64")]
        records = app.runner.journal.records()
        (group,) = {record.group for record in records}
        assert group.startswith("job-")
        await until(pilot, lambda: f"Launched 6 jobs of jobs.py:job, group {group}" in status(app.screen), "word of it")
        await until(pilot, lambda: {row.group for row in app.jobs.rows.values()} == {group}, "the group in each row")
        rows = list(app.jobs.rows.values())
        assert all(map(parse_filter(f"group:{group}"), rows))
        assert not any(map(parse_filter("group:other"), rows))


async def test_going_back_launches_nothing(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await swept(pilot, app, lr="0.1,0.2")
        await asked(pilot, app)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen, "the form")
        assert scheduler.launched == []
        assert app.runner.journal.records() == []
        assert row_of(screen, "lr").input.value == "0.1,0.2"


async def test_more_than_the_settings_allow_is_refused(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await swept(pilot, app, batch="1..7")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "7 jobs; most_of_a_sweep in config.toml is 6" in status(screen), "the refusal")
        assert status(screen).startswith("✗ not launched: 7 jobs")
        assert app.screen is screen
        assert scheduler.launched == []


async def test_texts_and_choices_are_several_only_where_a_key_says_so(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await swept(pilot, app, data="a, b")
        assert "submits" in words(screen)
        assert "jobs" not in words(screen)
        row_of(screen, "data").input.focus()
        await pilot.press("ctrl+g")
        await until(pilot, lambda: "submits 2 jobs" in words(screen), "two jobs")
        row_of(screen, "flag").input.focus()
        await pilot.press("ctrl+g")
        await until(pilot, lambda: hasattr(row_of(screen, "flag").input, "cursor_position"), "an input for choices")
        await type_into(pilot, screen, "flag", "true,maybe")
        wanted = "maybe: use one of true, false"
        await until(pilot, lambda: row_of(screen, "flag").field.error == wanted, "the error")
        await type_into(pilot, screen, "flag", "true,false")
        await until(pilot, lambda: "submits 4 jobs" in words(screen), "four jobs")
        await asked(pilot, app)
        await pilot.press("4", "enter")
        await until(pilot, lambda: len(scheduler.launched) == 4, "the jobs")
        assert [(one.roles[0].args[0], one.roles[0].args[3]) for one in scheduler.launched] == [
            ("a", "True"), ("a", "False"), ("b", "True"), ("b", "False"),
        ]  # fmt: skip


async def test_nothing_is_launched_where_one_of_them_cannot_be(app, scheduler):
    def refuse(made, cfg):
        if made.roles[0].args[1] == "0.3":
            raise SchedulerError("not with 0.3")

    scheduler.refuse = refuse
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await swept(pilot, app, lr="0.1,0.2,0.3")
        await asked(pilot, app)
        await pilot.press("3", "enter")
        await until(pilot, lambda: "lr=0.3: not with 0.3" in status(screen), "the refusal")
        assert status(screen).startswith("✗ ")
        assert scheduler.launched == []
        assert app.runner.journal.records() == []


async def test_the_command_has_a_line_for_each(app):
    async with app.run_test(size=(160, 40)) as pilot:
        screen = await swept(pilot, app, lr="0.1,0.2")
        await pilot.press("ctrl+t", "ctrl+t")
        lines = [line for line in preview(screen).splitlines() if line]
        assert len(lines) == 2
        assert lines[0].endswith("jobs.py:job --data corpus")
        assert lines[1].endswith("jobs.py:job --data corpus --lr 0.2")


def test_a_sweep_says_how_far_it_is(app):
    model = FormModel(describe("jobs.py:job"))
    model.choose_scheduler("local_cwd", app.runner.run_opts("local_cwd"))
    model.set("argument", "data", "corpus")
    model.set("argument", "lr", "0.2,0.3")
    said: list[str] = []
    launch_all(app.runner, list(model.plans()), Progress(said.append))
    wanted = [f"{what} {number} of 2: lr=0.{number + 1}" for what in ("Checking", "Launching") for number in (1, 2)]
    assert [words for words in said if " of 2: " in words] == wanted
