"""What people mistype in picker and form: the message, where it stands, and that nothing comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.component_files import ComponentFile
from support.launching import LaunchingScheduler, launching_app
from support.screens import Launch, jobs_of, launch_of
from support.tables import toml_table

from torchx_tui.backends.api import NameFault
from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.backends.workspace import WorkspaceMixin
from torchx_tui.components.finder import describe
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.run_options import runopts
from torchx_tui.tui.launch.form_model import FormModel
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.launch.work import named_resource

# The smaller the screen, the sooner it is drawn; what is said is the same.
SIZE = (100, 30)
JOB = '''
from typing import Literal, Optional

def job(*rest: str, data: str, steps: int = 1, lr: float = 0.1, maybe: Optional[int] = None,
        env: Optional[dict[str, str]] = None, counts: Optional[dict[str, int]] = None,
        numbers: Optional[list[int]] = None, pair: tuple[int, str] = (1, "a"),
        letter: Literal["a", "b", "c", "d", "e"] = "a",
        level: Literal[1, 2, 3, 4, 5] = 1, name: str = "job", api_key: int = 1, flag: bool = False) -> AppDef:
    """Train."""
    return AppDef(name, [Role("r", "image", entrypoint="true", args=[data])])
'''
NAME = "jobs.py:job"


@dataclass(frozen=True)
class Bad:
    """One bad input, and a part of the message at its field; `hidden` are secrets that no message may show."""

    field: str
    typed: str
    message: str
    section: str = "argument"
    hidden: tuple[str, ...] = ()


TABLES = {
    name: [Bad(*row) for row in rows] for name, rows in toml_table(Path(__file__).with_name("bad_input.toml")).items()
}
TABLES["arguments"].append(Bad("steps", "9" * 5000, "is not a whole number"))
FOLDERS = TABLES.pop("folders")
NEEDED = (("data", "corpus", "argument"), ("queue", "short", "option"), ("script", "train.py", "argument"))


class Cluster(WorkspaceMixin[Any], LaunchingScheduler):
    """Has an option of every kind, takes workspaces, and refuses names with a dot."""

    def _run_opts(self):
        opts = runopts()
        opts.add("queue", str, "Where to wait.", required=True)
        opts.add("retries", int, "How often.", default=3)
        opts.add("share", float, "Of what.")
        opts.add("wait", bool, "Whether to wait.", default=True)
        opts.add("labels", dict[str, str], "Of the job.")
        return opts

    def build_workspace_and_update_role(self, role: Any, workspace: str, cfg: Any) -> None:
        """Leave the image as it is."""

    def check_names(self, app, cfg):
        return [NameFault("", app.name, "a dot is in it", "letters and digits alone")] if "." in app.name else []


@pytest.fixture
def scheduler():
    return Cluster()


@pytest.fixture
def app(scheduler, tmp_path, monkeypatch):
    return launching_app(scheduler, tmp_path, monkeypatch)


@pytest.fixture
def jobs(app):
    return ComponentFile(Path("jobs.py")).write(JOB)


@pytest.fixture
def no_launch(app, scheduler):
    """Check that nothing was launched or noted."""
    yield
    assert (scheduler.launched, app.runner.journal.records()) == ([], [])


pytestmark = pytest.mark.usefixtures("jobs")
launches_nothing = pytest.mark.usefixtures("no_launch")


async def filled(launch: Launch) -> None:
    """Fill in what the form needs, and wait until it could be launched."""
    for name, text, section in NEEDED:
        if launch.model.get(section, name) is not None:
            launch.set(name, text, section)
    await launch.until(lambda: "ready" in launch.words() and launch.model.roles, "the form")


async def tried(launch: Launch, bad: Bad) -> None:
    """Type a bad input, try to launch it, and take it back."""
    if bad.section.startswith("role:"):
        # The answer to what was typed before makes the rows of the role anew.
        await launch.until(lambda: launch.editor.is_answered, f"the answer before {bad}")
    where = (bad.field, bad.section)
    before = launch.value(*where)
    launch.set(bad.field, bad.typed, bad.section)
    await launch.until(lambda: bad.message in launch.error(*where), f"{bad}: {launch.words()}")
    said = launch.error(*where)
    await launch.refused(bad.field)
    assert launch.at() == bad.field
    shown = [said, launch.message(), launch.warnings(), launch.words(), launch.preview()]
    assert not [text for text in shown for secret in (*bad.hidden, "Traceback") if secret in text]
    launch.set(bad.field, before, bad.section)
    await launch.until(lambda: not launch.field(*where).error, f"no error at {bad}")


@pytest.mark.parametrize("name", TABLES)
def test_each_bad_input_is_an_error_of_its_field(scheduler, name):
    # Named resources are checked once they are loaded.
    assert named_resource("gpu.small")
    model = FormModel(describe("dist.torchrun" if name == "builtin" else NAME))
    model.choose_scheduler("cluster", scheduler.run_opts(), workspace="")
    for needed, text, section in NEEDED:
        if model.get(section, needed) is not None:
            model.set(section, needed, text)
    model.take_app(model.plan().made_app())
    for bad in TABLES[name]:
        field = model.get(bad.section, bad.field)
        assert field is not None
        before = field.text
        model.set(bad.section, bad.field, bad.typed)
        assert bad.message in field.error
        assert not any(secret in field.error for secret in bad.hidden)
        assert field in model.errors()
        model.set(bad.section, bad.field, before)
        assert model.errors() == []


@launches_nothing
@pytest.mark.parametrize("component", [NAME, "dist.torchrun"])
async def test_an_error_stands_at_its_field(app, component):
    """One of each kind of field, and whatever holds a secret."""
    async with launch_of(app, component, SIZE) as launch:
        await filled(launch)
        for name in ("builtin",) if component != NAME else ("arguments", "sweeps", "options", "roles"):
            if name == "roles":
                await launch.open_role("r")
            first, *others = TABLES[name]
            for bad in (first, *(bad for bad in others if bad.hidden)):
                await tried(launch, bad)
        if component == NAME:
            for bad in (*FOLDERS, Bad("name", "a.b", "the app name a.b: a dot is in it")):
                await tried(launch, bad)
        launch.form.scheduler.focus()
        await filled(launch)


@launches_nothing
async def test_missing_values_are_filled_one_after_the_other(app):
    async with launch_of(app, NAME, (160, 45)) as launch:
        assert "data, queue are missing" in launch.words()
        launch.editor.preview.show("dry run")
        assert "data: required\n" in launch.preview()
        assert launch.origin("data") == "required"
        await launch.refused("data, queue")
        assert launch.at() == "data"
        await launch.type(data="x")
        assert launch.origin("data") == "typed"
        await launch.refused("queue")
        assert launch.at() == "queue"


async def test_an_earlier_launch_with_values_that_became_invalid(app, scheduler):
    origin = LaunchOrigin(NAME, {"data": "x", "steps": "many", "letter": "z", "flag": "maybe", "gone": "1"})
    old = AppDef("job", [Role("r", "", entrypoint="true")])
    record = app.runner.journal.record_intent(
        old, "local_cwd", "torchx", {"retries": "often", "wait": "perhaps", "queue": "q"}, origin=origin
    )
    async with launch_of(app, NAME, SIZE) as launch:
        errors = {one.name: one.error for one in launch.model.errors()}
        assert list(errors) == ["steps", "letter", "flag", "retries", "wait"]
        assert "`many` is not a whole number" in errors["steps"]
        assert "`perhaps` is not true or false" in errors["wait"]
        await launch.refused("steps, letter, flag, retries, wait")
        # An argument that the component lost is in the difference.
        assert ("gone", "1", "") in launch.model.diff(record)
        assert scheduler.launched == []
        assert [one.id for one in app.runner.journal.records()] == [record.id]


# The picker


@pytest.fixture
def unusable(app):
    """Write files that are no Python."""
    Path("latin.py").write_bytes(b"def job() -> AppDef: '\xff\xfe'\n")
    Path("broken.py").write_text("def job(\n")


@launches_nothing
async def test_a_component_that_cannot_be_picked_says_why(app, jobs, unusable):
    async with launch_of(app, "", SIZE) as launch:
        for typed, message in (
            ("/no/such/x.py:job", "there is no file /no/such/x.py"), ("jobs.py:nothing", "has no nothing. Components"),
            ("jobs.py:jbo", "Did you mean job?"), ("./jobs.py:", "has no"), ("nowhere/:job", "there is no file"),
            ("latin.py:job", "latin.py"), ("broken.py:job", "'(' was never closed"),
        ):  # fmt: skip
            app.status.clear()
            launch.set_search(typed)
            await launch.press("enter", shows=message)
            assert launch.screen.is_picking
            assert launch.component() == ""
        # A file that is removed while its component is highlighted.
        launch.set_search("jobs.py")
        await launch.finds(NAME)
        jobs.path.unlink()
        await launch.press("enter", shows="there is no file")
        assert launch.screen.is_picking


# What only running the component tells


@launches_nothing
async def test_a_component_that_fails_says_where(app, jobs):
    async with launch_of(app, NAME, SIZE) as launch:
        await filled(launch)
        for number, (body, message) in enumerate(
            (
                ("raise ValueError('no [red]data[/red] there')", "ValueError: no [red]data[/red] there"),
                ("import sys; sys.exit(3)", "it called sys.exit(3)"),
                ("return None", "a component returns AppDef, this one returned NoneType"),
                ("return AppDef('empty', [])", "has no roles"),
            )
        ):
            jobs.write(f'def job(data: str) -> AppDef:\n    """Fail."""\n    {body}\n')
            launch.set("data", f"corpus {number}")
            await launch.shows(message, on="warnings")
            assert "the request could not be made" in launch.words()
            assert ("jobs.py" in launch.warnings()) is ("AppDef(" not in body)
            await launch.refused()
            assert app.screen is launch.screen


@launches_nothing
async def test_a_fault_of_two_arguments_stands_below_the_form(app):
    async with launch_of(app, "dist.torchrun", SIZE) as launch:
        for name in ("script", "m"):
            launch.set(name, "train")
        launch.set("queue", "short", "option")
        await launch.shows("fill in exactly one of: script, m", on="warnings")
        await launch.refused("fill in exactly one of: script, m")


@launches_nothing
async def test_a_role_without_a_program_is_missing_it(app, jobs):
    jobs.write('def job() -> AppDef:\n    """Fail."""\n    return AppDef("x", [Role("r", "")])\n')
    async with launch_of(app, NAME, SIZE) as launch:
        launch.set("queue", "short", "option")
        await launch.shows("entrypoint is missing", on="words")
        await launch.refused("entrypoint")
        assert launch.at() == "entrypoint"


@launches_nothing
async def test_a_file_is_removed_or_broken_under_its_open_form(app, jobs):
    async with launch_of(app, NAME, SIZE) as launch:
        await filled(launch)
        text = jobs.path.read_text()
        for broken, message in (
            ("", "there is no file"), ("def job(\n", "syntax error"),
            (text.replace("data: str", "date: str"), "no such argument"),
            (text.replace("-> AppDef", "-> int"), "incorrect return annotation"),
        ):  # fmt: skip
            jobs.path.unlink(missing_ok=True)
            if broken:
                jobs.path.write_text(broken)
            await launch.type(data=f"corpus {len(message)}")
            await launch.until(lambda message=message: message in launch.warnings() + launch.error("data"), message)
            await launch.press("ctrl+y")
            await launch.refused()
        jobs.path.write_text(text)
        await filled(launch)


# Dialogs of fields, and what comes between


@launches_nothing
async def test_an_item_of_several_lines_has_no_dialog(app):
    async with launch_of(app, NAME, SIZE) as launch:
        await filled(launch)
        launch.set("rest", "'a\nb'")
        await launch.until(lambda: launch.field("rest").text == "'a\nb'")
        launch.row("rest").input.focus()
        await launch.press("enter", shows="has an item of several lines")
        assert app.screen is launch.screen


@launches_nothing
async def test_a_scheduler_whose_options_fail_says_so(app, scheduler):
    def fails():
        raise RuntimeError("its config is [broken]")

    scheduler.run_opts = fails
    async with launch_of(app, "", SIZE) as launch:
        await launch.press(*"jobs.py", "enter", shows="RuntimeError: its config is [broken]")
        assert not launch.form.rows
        await launch.press("escape", until=lambda: app.screen is not launch.screen or launch.screen.is_picking)


async def test_the_form_is_left_for_the_picker_while_it_launches(app, scheduler, hold):
    """The end of a launch is shown although its form is gone."""
    held = hold(scheduler, "schedule")
    async with launch_of(app, NAME, SIZE) as launch:
        await filled(launch)
        await launch.press("ctrl+s", until=held.begun.is_set, what="the launch")
        await launch.press("escape", until=lambda: launch.screen.is_picking, what="the picker")
        held.go.set()
        await launch.shows("Launched job-1", on="said")
        assert len(scheduler.launched) == 1


async def test_a_job_whose_component_is_gone_has_no_command(app, scheduler, jobs):
    made = AppDef("job", [Role("r", "", entrypoint="true")])
    app.runner.run(made, "local_cwd", {"queue": "q"}, origin=LaunchOrigin(NAME, {"data": "x"}))
    jobs.path.unlink()
    async with jobs_of(app, SIZE) as table:
        await table.press("Y", shows=("Command not copied: ", "there is no file"))
        await table.open(LaunchScreen, "e")
        await table.shows("there is no file")
        assert len(scheduler.launched) == 1
