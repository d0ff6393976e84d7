"""A field with several values launches each: confirmed by count, capped, with a group in common."""

from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.component_files import ComponentFile
from support.launching import LaunchingScheduler, launching_app
from support.screens import launch_of

from torchx_tui.backends.shared.progress import Progress
from torchx_tui.components.finder import describe
from torchx_tui.settings.config import LaunchSettings, Settings
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.tui.jobs.filter import parse_filter
from torchx_tui.tui.launch.form_model import FormModel
from torchx_tui.tui.launch.work import launch_all
from torchx_tui.tui.ui.dialog import AskDialog

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


@asynccontextmanager
async def swept(app, **texts: str):
    """Open the form of jobs.py:job, and type into it."""
    async with launch_of(app, "jobs.py:job") as launch:
        await launch.type(**{"data": "corpus", **texts})
        await launch.ready()
        yield launch


def launched(scheduler, *numbers: int) -> list[tuple[str, ...]]:
    """Return some of the arguments of each job, by their numbers."""
    return [tuple(made.roles[0].args[number] for number in numbers) for made in scheduler.launched]


async def test_a_sweep_is_launched_once_its_count_is_typed(app, scheduler):
    async with swept(app, lr="0.1, 0.01", batch="16..64*2") as launch:
        assert "ctrl+s submits 6 jobs" in launch.words()
        launch.editor.preview.show("dry run")
        await launch.shows("the first of the sweep: lr=0.1 batch=16", on="preview")
        await launch.open(AskDialog, "ctrl+s")
        await launch.press("5", "enter")
        assert isinstance(app.screen, AskDialog)
        assert scheduler.launched == []
        await launch.press("backspace", "6", "enter", until=lambda: len(app.jobs.rows) == 6, what="the jobs")
        assert launched(scheduler, 1, 2) == [(lr, batch) for lr in ("0.1", "0.01") for batch in ("16", "32", "64")]
        (group,) = {record.group for record in app.runner.journal.records()}
        assert {"lr": "0.01", "batch": "64"} in [record.swept for record in app.runner.journal.records()]
        assert group.startswith("job-")
        await launch.shows(f"Launched 6 jobs of jobs.py:job, group {group}")
        await launch.until(lambda: {row.group for row in app.jobs.rows.values()} == {group}, "the group in each row")
        assert all(map(parse_filter(f"group:{group}"), app.jobs.rows.values()))


async def test_going_back_launches_nothing(app, scheduler):
    async with swept(app, lr="0.1,0.2") as launch:
        await launch.open(AskDialog, "ctrl+s")
        await launch.back("escape")
        assert (scheduler.launched, app.runner.journal.records()) == ([], [])
        assert launch.value("lr") == "0.1,0.2"


@pytest.mark.parametrize(("text", "count"), [("1..7", "7"), ("1..10000", "10,000")])
async def test_more_than_the_settings_allow_is_refused(app, scheduler, text, count):
    async with swept(app, batch=text) as launch:
        await launch.refused(f"✗ Not launched: {count} jobs are more than most_of_a_sweep in config.toml allows (6)")
        assert app.screen is launch.screen
        assert scheduler.launched == []


async def test_texts_and_choices_are_several_after_a_key(app, scheduler):
    async with swept(app, data="a, b") as launch:
        assert "submits" in launch.words()
        assert "jobs" not in launch.words()
        launch.row("data").input.focus()
        await launch.press("ctrl+g", shows="submits 2 jobs", on="words")
        launch.row("flag").input.focus()
        await launch.press(
            "ctrl+g", until=lambda: hasattr(launch.row("flag").input, "cursor_position"), what="an input for choices"
        )
        await launch.type(flag="true,maybe")
        await launch.until(lambda: "maybe: use one of true, false" in launch.error("flag"), "the error")
        await launch.type(flag="true,false")
        await launch.shows("submits 4 jobs", on="words")
        await launch.open(AskDialog, "ctrl+s")
        await launch.press("4", "enter", until=lambda: len(scheduler.launched) == 4, what="the jobs")
        assert launched(scheduler, 0, 3) == [("a", "True"), ("a", "False"), ("b", "True"), ("b", "False")]


async def test_one_refused_job_stops_the_whole_sweep(app, scheduler):
    def refuse(made, cfg):
        if made.roles[0].args[1] == "0.3":
            raise SchedulerError("not with 0.3")

    scheduler.refuse = refuse
    async with swept(app, lr="0.1,0.2,0.3") as launch:
        await launch.open(AskDialog, "ctrl+s")
        await launch.press("3", "enter", shows=("✗ ", "lr=0.3: not with 0.3"))
        assert (scheduler.launched, app.runner.journal.records()) == ([], [])


def test_a_sweep_reports_its_progress(app):
    model = FormModel(describe("jobs.py:job"))
    model.choose_scheduler("local_cwd", app.runner.scheduler("local_cwd").run_opts())
    model.set("argument", "data", "corpus")
    model.set("argument", "lr", "0.2,0.3")
    said: list[str] = []
    launch_all(app.runner, list(model.plans()), Progress(said.append))
    wanted = [f"{what} {number} of 2: lr=0.{number + 1}" for what in ("Checking", "Launching") for number in (1, 2)]
    assert [words for words in said if " of 2: " in words] == wanted


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("--lr 0.1, 0.2", "data: the value `0.2` does not begin with --lr: write each value in full"),
        ("--lr=0.1, 0.2", "data: the value `0.2` does not begin with --lr: write each value in full"),
        ("--lr 0.1, --lr 0.2", ""),
        ("a, b", ""),
    ],
)
def test_sweep_value_without_its_option_warns(app, text, warning):
    model = FormModel(describe("jobs.py:job"))
    field = model.set("argument", "data", text)
    assert field is not None
    model.toggle_several(field)
    assert field.sweep_warning == warning


def test_sweep_labels_quote_values_with_spaces(app):
    model = FormModel(describe("jobs.py:job"))
    model.choose_scheduler("local_cwd", app.runner.scheduler("local_cwd").run_opts())
    field = model.set("argument", "data", "'a, b', --lr 1")
    assert field is not None
    model.toggle_several(field)
    assert [plan.label for plan in model.plans()] == ["data='a, b'", "data='--lr 1'"]


async def test_form_shows_the_warning_of_a_sweep(app):
    async with swept(app, data="--lr 0.1, 0.2") as launch:
        launch.row("data").input.focus()
        await launch.press("ctrl+g", shows="! data: the value `0.2` does not begin with --lr", on="warnings")
