"""What people mistype in picker and form: the message, where it stands, and that nothing comes of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.component_files import ComponentFile
from support.dashboard import until
from support.launching import (
    LaunchingScheduler,
    drawn,
    form_of,
    launching_app,
    model_of,
    opened,
    preview,
    row_of,
    status,
    type_into,
    words,
)
from support.waiting import PATIENCE

from torchx_tui.backends.api import NameFault
from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.backends.workspace import WorkspaceMixin
from torchx_tui.components import describe
from torchx_tui.specs import AppDef, Role, runopts
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch.field_dialogs import ItemsDialog
from torchx_tui.tui.launch.form_model import FormModel
from torchx_tui.tui.launch.role_rule import RoleRule
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.launch.sweep_dialog import SweepDialog
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


@dataclass(frozen=True)
class Bad:
    """One bad input.

    Attributes:
        field: where it is typed.
        typed: what.
        message: a part of what is said there.
        section: the field's section.
        hidden: what of it no message may hold.
    """

    field: str
    typed: str
    message: str
    section: str = "argument"
    hidden: tuple[str, ...] = ()


ARGUMENTS = [
    Bad("steps", "1x", "`1x` is not a whole number"),
    Bad("steps", "1.5", "`1.5` is not a whole number"),
    Bad("steps", " ", "is not a whole number"),
    Bad("steps", "", "use a whole number"),
    Bad("steps", "9" * 5000, "is not a whole number"),
    Bad("lr", "fast", "`fast` is not a number"),
    Bad("lr", "0,5x", "`5x` is not a number"),
    Bad("lr", "1e", "`1e` is not a number"),
    Bad("maybe", "none", "`none` is not a whole number"),
    Bad("env", "A", "Use KEY=value,KEY2=value2"),
    Bad("env", "A=1,B=", "the value is missing"),
    Bad("env", "=1", "the key is missing"),
    Bad("env", "A=1=2", "is not a value, `,` or `;`, and the next key"),
    Bad("env", "HF_TOKEN=hunter2,B=", "HF_TOKEN=********", hidden=("hunter2",)),
    Bad("env", "PASSWORD='hunter2, two',B=", "PASSWORD=********", hidden=("hunter2", "two")),
    Bad("counts", "a=one", "`one` is not a whole number"),
    Bad("counts", "SECRET_KEY=hunter2", "`********` is not a whole number", hidden=("hunter2",)),
    Bad("numbers", "1,two", "`two` is not a whole number"),
    Bad("numbers", "1,,2", "`` is not a whole number"),
    Bad("pair", "1", "has 1 items. Use 2: int, str"),
    Bad("pair", "x,1", "`x` is not a whole number"),
    Bad("letter", "f", "Use one of a, b, c, d, e"),
    Bad("level", "9", "Use one of 1, 2, 3, 4, 5"),
    Bad("api_key", "hunter2", "is not a whole number", hidden=("hunter2",)),
    Bad("api_key", "hunter2,x", "not valid: use int", hidden=("hunter2",)),
    Bad("rest", "one 'two", "a quote has no partner"),
    Bad("rest", 'a "b', "a quote has no partner"),
]
SWEEPS = [
    Bad("lr", "0.1..x", "`x` in `0.1..x` is not a number: use a list such as 0.1, 0.01, or a range"),
    Bad("steps", "1..0*1", "needs ends over 0 and a factor that is not 1"),
    Bad("steps", "1..1000000", "has 1,000,000 values; at most 10,000 can be read"),
    Bad("steps", "1..2..0", "the step of `1..2..0` is 0"),
    Bad("steps", "1..2..0.5", "no whole numbers"),
    Bad("steps", "1,2,x", "x: `x` is not a whole number"),
    Bad("steps", ",", "there is no value in it"),
    Bad("lr", "1..1e999999", "too large or too small"),
    Bad("lr", "1..2..3..4", "is not a range"),
    Bad("level", "1..9", "6: `6` is not valid"),
]
OPTIONS = [
    Bad("retries", "many", "`many` is not a whole number", "option"),
    Bad("retries", "1..x", "is not a number", "option"),
    Bad("share", "half", "`half` is not a number", "option"),
    Bad("labels", "a", "Use key:value", "option"),
    Bad("labels", "TOKEN=hunter2", "Use key:value", "option", ("hunter2",)),
    Bad("workspace", "{/a: b", "workspace: while parsing", "launch"),
    Bad("workspace", "[/a, /b]", "use one path, or a mapping of paths to folders", "launch"),
]
# Known once somebody has looked for them.
FOLDERS = [
    Bad("workspace", "/no/such/folder", "cannot be read: No such file or directory", "launch"),
    Bad("workspace", "~nobody.here/x", "~nobody.here/x cannot be read", "launch"),
    Bad("workspace", "nosuch://bucket/x", "cannot be opened", "launch"),
]
ROLES = [
    Bad("num_replicas", "0", "use 1 or more, not 0", "role:r"),
    Bad("num_replicas", "two", "`two` is not a whole number", "role:r"),
    Bad("num_replicas", "1,0", "0: use 1 or more, not 0", "role:r"),
    Bad("resource", "gpu.smal", "Did you mean `gpu.small`?", "role:r"),
    Bad("cpu", "-1", "use 0 or more, not -1", "role:r"),
    Bad("gpu", "0.5", "`0.5` is not a whole number", "role:r"),
    Bad("memMB", "4GB", "`4GB` is not a whole number", "role:r"),
    Bad("env", "A B", "Use KEY=value", "role:r"),
    Bad("env", "API_KEY=hunter2,B=", "API_KEY=********", "role:r", ("hunter2",)),
    Bad("mounts", "src=/a,dst=/b", "`type=` must come first", "role:r"),
    Bad("mounts", "type=bind,src=/a", "wants `dst=`", "role:r"),
    Bad("mounts", "type=nfs,src=/a,dst=/b", "Valid types: bind, volume, device", "role:r"),
    Bad("mounts", "type=device,src=/dev/x,perm=q", "`q` is not valid", "role:r"),
    Bad("max_retries", "-1", "use 0 or more, not -1", "role:r"),
    Bad("workspace", "{", "workspace:", "role:r"),
    Bad("entrypoint", "  ", "use a program to run", "role:r"),
    Bad("args", "it's", "a quote has no partner", "role:r"),
]
BUILTIN = [
    Bad("j", "0x2", "nodes and workers are at least 1"),
    Bad("j", "2x", "use NODESxWORKERS, such as 2x8"),
    Bad("j", "8:2x1", "the fewest nodes, 8, are more than the most, 2"),
    Bad("j", "two", "use NODESxWORKERS"),
    Bad("h", "gpu.smal", "Did you mean `gpu.small`?"),
    Bad("h", "nothing-like-it", "Valid names"),
    Bad("mounts", "type=bind", "wants `src=`"),
    Bad("rdzv_port", "http", "`http` is not a whole number"),
    Bad("metadata", "k", "Use KEY=value"),
    Bad("tee", "both", "`both` is not a whole number"),
]
NEEDED = {"argument": ("data", "corpus"), "option": ("queue", "short")}


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
    return ComponentFile(Path("jobs.py"))


def nothing_came_of_it(app, scheduler) -> None:
    """Check that nothing was launched or noted, and that no traceback is on the screen."""
    assert scheduler.launched == []
    assert app.runner.journal.records() == []
    shown = app.export_screenshot()
    assert "Traceback" not in shown
    assert "hunter2" not in shown


async def ready_form(pilot, app, name: str = "jobs.py:job") -> LaunchScreen:
    """Open a form and fill in what it needs."""
    screen = await form_of(pilot, app, name)
    for section, (needed, text) in NEEDED.items():
        if model_of(screen).get(section, needed) is not None:
            row_of(screen, needed, section).input.value = text
    return screen


async def is_ready(pilot, screen) -> None:
    await until(pilot, lambda: "ready" in words(screen) and model_of(screen).roles, "the form")


async def tried(pilot, app, screen, scheduler, bad: Bad) -> None:
    """Type a bad input, try to launch it, and take it back."""
    where = f"{bad.section} {bad.field}={bad.typed[:40]}"
    if bad.section.startswith("role:"):
        # The answer to what was typed before makes the rows of the role anew.
        await until(pilot, lambda: screen.editor.dry_run.is_answered, f"the answer before {where}")
    row = row_of(screen, bad.field, bad.section)
    before, row.input.value = row.input.value, bad.typed
    await until(pilot, lambda: row.field.error and row._error.display, f"an error at {where}: {words(screen)}")
    said = str(row._error.render())
    assert bad.message in said, f"{where}: {said}"
    app.status.clear()
    await pilot.press("ctrl+s")
    await until(pilot, lambda: f"not launched: {bad.field}" in status(screen), f"no launch of {where}")
    assert row.input.has_focus, where
    for secret in bad.hidden:
        for words_of in (said, status(screen), drawn(screen, "#form-warnings"), words(screen), preview(screen)):
            assert secret not in words_of, where
    assert not isinstance(app.screen, SweepDialog)
    row.input.value = before
    await until(pilot, lambda: not row.field.error, f"no error at {where}")


TABLES = {"arguments": ARGUMENTS, "sweeps": SWEEPS, "options": OPTIONS, "roles": ROLES, "builtin": BUILTIN}


@pytest.mark.parametrize("name", TABLES)
def test_each_says_what_is_wrong(scheduler, jobs, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jobs.write(JOB)
    # Named resources are checked once they are loaded.
    assert named_resource("gpu.small")
    model = FormModel(describe("dist.torchrun" if name == "builtin" else "jobs.py:job"))
    model.choose_scheduler("cluster", scheduler.run_opts(), takes_workspace=True)
    for section, (needed, text) in {**NEEDED, "builtin": ("script", "train.py")}.items():
        section = "argument" if section == "builtin" else section
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


@pytest.mark.parametrize("names", [("arguments", "sweeps", "options", "roles"), ("builtin",)])
async def test_it_stands_where_it_is_wrong_and_nothing_is_launched(app, scheduler, jobs, names):
    """One of each kind of field, and whatever holds a secret."""
    jobs.write(JOB)
    builtin = names == ("builtin",)
    async with app.run_test(size=SIZE) as pilot:
        screen = await ready_form(pilot, app, "dist.torchrun" if builtin else "jobs.py:job")
        if builtin:
            row_of(screen, "script").input.value = "train.py"
        await is_ready(pilot, screen)
        for name in names:
            if name == "roles":
                screen.query_one(RoleRule).focus()
                await pilot.press("enter")
                await until(pilot, lambda: screen.editor.form.row("role:r", "args"), "the role's fields")
            first, *others = TABLES[name]
            for bad in (first, *(bad for bad in others if bad.hidden)):
                await tried(pilot, app, screen, scheduler, bad)
        for bad in () if builtin else FOLDERS:
            await tried(pilot, app, screen, scheduler, bad)
        screen.query_one("#scheduler").focus()
        await is_ready(pilot, screen)
        nothing_came_of_it(app, scheduler)


def test_the_table_is_long():
    rows = [bad for table in TABLES.values() for bad in table]
    assert len({(bad.section, bad.field, bad.typed) for bad in rows}) == len(rows) > 60


async def test_what_must_be_given_is_missing_one_after_the_other(app, scheduler, jobs):
    jobs.write(JOB)
    async with app.run_test(size=SIZE) as pilot:
        screen = await form_of(pilot, app, "jobs.py:job")
        assert "data, queue are missing" in words(screen)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "not launched: data, queue" in status(screen))
        assert row_of(screen, "data").input.has_focus
        await type_into(pilot, screen, "data", "x")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "not launched: queue" in status(screen))
        assert row_of(screen, "queue", "option").input.has_focus
        nothing_came_of_it(app, scheduler)


async def test_a_name_that_the_backend_refuses_stands_at_the_name(app, scheduler, jobs):
    jobs.write(JOB)
    async with app.run_test(size=SIZE) as pilot:
        screen = await ready_form(pilot, app)
        await is_ready(pilot, screen)
        await tried(pilot, app, screen, scheduler, Bad("name", "a.b", "the app name a.b: a dot is in it"))
        nothing_came_of_it(app, scheduler)


async def test_a_sweep_that_is_too_large_or_not_confirmed_or_refused_in_part(app, scheduler, jobs):
    jobs.write(JOB)

    def refuse(app, cfg):
        if app.roles[0].args == ["two"]:
            raise ValueError("no more than one")

    scheduler.refuse = refuse
    async with app.run_test(size=SIZE) as pilot:
        screen = await ready_form(pilot, app)
        await is_ready(pilot, screen)
        for text, count in (("1..65", "65"), ("1..10000", "10,000")):
            row_of(screen, "steps").input.value = text
            await until(pilot, lambda text=text: row_of(screen, "steps").field.text == text)
            app.status.clear()
            await pilot.press("ctrl+s")
            said = f"not launched: {count} jobs; most_of_a_sweep in config.toml is 64"
            await until(pilot, lambda said=said: said in status(screen), said)
        row_of(screen, "steps").input.value = "1"
        row = row_of(screen, "data")
        row.input.focus()
        await until(pilot, lambda: row.input.has_focus)
        await pilot.press("ctrl+g")
        await until(pilot, lambda: row_of(screen, "data").field.several)
        row_of(screen, "data").input.value = "one,two"
        await until(pilot, lambda: "submits 2 jobs" in words(screen))
        for typed, over in ((["1", "enter"], False), (["backspace", "3", "ctrl+s"], False), (["escape"], True)):
            if not isinstance(app.screen, SweepDialog):
                await pilot.press("ctrl+s")
                await until(pilot, lambda: isinstance(app.screen, SweepDialog), "the question")
            await pilot.press(*typed)
            await until(pilot, lambda over=over: isinstance(app.screen, SweepDialog) is not over)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, SweepDialog), "the question")
        await pilot.press("2", "enter")
        await until(pilot, lambda: "not launched: data=two: no more than one" in status(screen), "the refusal")
        nothing_came_of_it(app, scheduler)


async def test_values_of_an_earlier_launch_that_are_not_valid_any_more(app, scheduler, jobs):
    jobs.write(JOB)
    origin = LaunchOrigin("jobs.py:job", {"data": "x", "steps": "many", "letter": "z", "flag": "maybe", "gone": "1"})
    old = AppDef("job", [Role("r", "", entrypoint="true")])
    record = app.runner.journal.record_intent(
        old, "local_cwd", "torchx", {"retries": "often", "wait": "perhaps", "queue": "q"}, origin=origin
    )
    async with app.run_test(size=SIZE) as pilot:
        screen = await form_of(pilot, app, "jobs.py:job")
        errors = {one.name: one.error for one in model_of(screen).errors()}
        assert list(errors) == ["steps", "letter", "flag", "retries", "wait"]
        assert "`many` is not a whole number" in errors["steps"]
        assert "`perhaps` is not true or false" in errors["wait"]
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "not launched: steps, letter, flag, retries, wait" in status(screen))
        # What the component has no more is in the difference, not lost without a word.
        assert ("gone", "1", "") in model_of(screen).diff(record)
        assert scheduler.launched == []
        assert [one.id for one in app.runner.journal.records()] == [record.id]


# The picker


def write_unusable() -> None:
    Path("latin.py").write_bytes(b"def job() -> AppDef: '\xff\xfe'\n")
    Path("loop.py").write_text("def job(**more: str) -> AppDef: ...\n")
    Path("broken.py").write_text("def job(\n")
    Path("untyped.py").write_text("def job(x) -> AppDef: ...\n")


UNUSABLE = [
    ("/no/such/x.py:job", "there is no file /no/such/x.py"),
    ("jobs.py:nothing", "has no nothing. Components there: job"),
    ("jobs.py:jbo", "Did you mean job?"),
    ("./jobs.py:", "has no"),
    ("no.such.module:job", "there is no file and no module no.such.module"),
    ("nowhere/:job", "there is no file"),
    ("latin.py:job", "latin.py"),
    ("loop.py:job", "Unsupported argument '**more'"),
    ("broken.py:job", "'(' was never closed"),
    ("untyped.py:job", "Missing type annotation for argument 'x'"),
]


async def test_a_component_that_cannot_be_picked_says_why(app, scheduler, jobs):
    jobs.write(JOB)
    write_unusable()
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot, app)
        for typed, message in UNUSABLE:
            app.status.clear()
            screen.chooser.picker.search.value = typed
            await pilot.press("enter")
            await until(pilot, lambda message=message: message in status(screen), f"{typed}: {status(screen)}")
            assert screen.is_picking
            assert screen.editor.model is None
            nothing_came_of_it(app, scheduler)


async def test_a_file_that_is_removed_while_its_component_is_picked(app, scheduler, jobs):
    jobs.write(JOB)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot, app)
        await pilot.press(*"jobs.py")
        await until(
            pilot, lambda: screen.chooser.picker.highlighted and screen.chooser.picker.highlighted.name == "jobs.py:job"
        )
        jobs.path.unlink()
        await pilot.press("enter")
        await until(pilot, lambda: "there is no file" in status(screen))
        assert screen.is_picking
        nothing_came_of_it(app, scheduler)


# What only running the component tells


FAILING = [
    ("raise ValueError('no [red]data[/red] there')", "ValueError: no [red]data[/red] there"),
    ("import sys; sys.exit(3)", "it called sys.exit(3)"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ("return None", "a component returns AppDef, this one returned NoneType"),
    ("return AppDef('empty', [])", "has no roles"),
    ("return AppDef('x', [Role('r', '', entrypoint='true', num_replicas=0)])", "at least 1 is needed"),
    ("import torchx_nothing_like_it", "ModuleNotFoundError"),
    ("return job(data)", "RecursionError"),
    ("raise ValueError('line 1\\nTraceback (most recent call last)')", "ValueError: line 1"),
]


async def test_a_component_that_fails_says_where_and_nothing_is_launched(app, scheduler, jobs):
    jobs.write(JOB)
    async with app.run_test(size=SIZE) as pilot:
        screen = await ready_form(pilot, app)
        await is_ready(pilot, screen)
        for number, (body, message) in enumerate(FAILING):
            jobs.write(f'def job(data: str) -> AppDef:\n    """Fail."""\n    {body}\n')
            row_of(screen, "data").input.value = f"corpus {number}"
            await until(pilot, lambda message=message: message in drawn(screen, "#form-warnings"), body)
            assert "the request could not be made" in words(screen)
            if "AppDef(" not in body:
                assert re.search(r"jobs\.py", drawn(screen, "#form-warnings"))
            app.status.clear()
            await pilot.press("ctrl+s")
            await until(pilot, lambda: "not launched:" in status(screen))
            assert app.screen is screen
            nothing_came_of_it(app, scheduler)


async def test_what_two_arguments_have_wrong_together_is_said_below(app, scheduler):
    async with app.run_test(size=SIZE) as pilot:
        screen = await ready_form(pilot, app, "dist.torchrun")
        for name in ("script", "m"):
            row_of(screen, name).input.value = "train"
        await until(pilot, lambda: "give exactly one of script, m" in drawn(screen, "#form-warnings"))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "not launched: give exactly one of script, m" in status(screen))
        nothing_came_of_it(app, scheduler)


async def test_a_role_without_a_program_is_missing_it(app, scheduler, jobs):
    jobs.write('def job() -> AppDef:\n    """Fail."""\n    return AppDef("x", [Role("r", "")])\n')
    async with app.run_test(size=SIZE) as pilot:
        screen = await ready_form(pilot, app)
        await until(pilot, lambda: "entrypoint is missing" in words(screen), "the entrypoint")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "not launched: entrypoint" in status(screen))
        assert row_of(screen, "entrypoint", "role:r").input.has_focus
        nothing_came_of_it(app, scheduler)


async def test_a_file_that_is_removed_or_broken_while_its_form_is_open(app, scheduler, jobs):
    jobs.write(JOB)
    async with app.run_test(size=SIZE) as pilot:
        screen = await ready_form(pilot, app)
        await is_ready(pilot, screen)
        text = jobs.path.read_text()
        for broken, message in (
            (None, "there is no file"),
            ("def job(\n", "syntax error"),
            (text.replace("data: str", "date: str"), "no such argument"),
            (text.replace("-> AppDef", "-> int"), "incorrect return annotation"),
        ):
            jobs.path.unlink(missing_ok=True)
            if broken is not None:
                jobs.path.write_text(broken)
            await type_into(pilot, screen, "data", f"corpus {len(message)}")
            await until(pilot, lambda message=message: message in _said(screen), message)
            await pilot.press("ctrl+y")
            app.status.clear()
            await pilot.press("ctrl+s")
            await until(pilot, lambda: "not launched:" in status(screen))
            nothing_came_of_it(app, scheduler)
        jobs.path.write_text(text)
        await type_into(pilot, screen, "data", "corpus")
        await is_ready(pilot, screen)


def _said(screen) -> str:
    return " ".join([drawn(screen, "#form-warnings"), *(one.error for one in model_of(screen).errors())])


# Dialogs of fields, and what comes between


async def test_items_that_are_none_are_not_taken(app, scheduler, jobs):
    jobs.write(JOB)
    async with app.run_test(size=SIZE) as pilot:
        screen = await ready_form(pilot, app)
        await is_ready(pilot, screen)
        row = row_of(screen, "env")
        row.input.focus()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ItemsDialog), "the dialog")
        dialog = app.screen
        for text, message in (("A", "A: use NAME=value"), ("A=1\nA=2", "A is given twice"), ("A,B=1", "no comma")):
            dialog._area.text = text
            await pilot.press("ctrl+s")
            await until(pilot, lambda message=message: message in str(dialog._words.render()), message)
            assert app.screen is dialog
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        assert row.input.value == ""
        # Several lines in one argument are more than a dialog with one a line can hold.
        rest = row_of(screen, "rest")
        rest.input.value = "'a\nb'"
        await until(pilot, lambda: rest.field.text == "'a\nb'")
        rest.input.focus()
        await pilot.press("enter")
        await until(pilot, lambda: "has an item of several lines" in status(screen))
        assert app.screen is screen
        nothing_came_of_it(app, scheduler)


async def test_a_scheduler_that_cannot_tell_its_options_says_so(app, scheduler, jobs):
    jobs.write(JOB)

    def fails():
        raise RuntimeError("its config is [broken]")

    scheduler.run_opts = fails
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot, app)
        await pilot.press(*"jobs.py", "enter")
        await until(pilot, lambda: "RuntimeError: its config is [broken]" in status(screen))
        assert not screen.editor.form.rows
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) or screen.is_picking)
        nothing_came_of_it(app, scheduler)


async def test_the_form_is_left_for_the_picker_while_it_launches(app, scheduler, jobs):
    """What comes of a launch is told although the form that asked for it is gone."""
    import threading

    go_on, schedule = threading.Event(), scheduler.schedule

    def slowly(info):
        assert go_on.wait(PATIENCE)
        return schedule(info)

    scheduler.schedule = slowly
    jobs.write(JOB)
    async with app.run_test(size=SIZE) as pilot:
        try:
            screen = await ready_form(pilot, app)
            await is_ready(pilot, screen)
            await pilot.press("ctrl+s")
            await until(pilot, lambda: screen._submitting, "the launch")
            await pilot.press("escape")
            await until(pilot, lambda: screen.is_picking, "the picker")
        finally:
            go_on.set()
        await until(pilot, lambda: "Launched job-1" in app.status.text().plain, "the end")
        assert len(scheduler.launched) == 1


async def test_the_command_of_a_job_whose_component_is_gone(app, scheduler, jobs):
    jobs.write(JOB)
    app.runner.run(
        AppDef("job", [Role("r", "", entrypoint="true")]), "local_cwd", {"queue": "q"},
        origin=LaunchOrigin("jobs.py:job", {"data": "x"}),
    )  # fmt: skip
    jobs.path.unlink()
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.cursor_row, "the job")
        await pilot.press("Y")
        await until(pilot, lambda: "no command: " in status(app.screen))
        assert "there is no file" in status(app.screen)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and "there is no file" in status(app.screen))
        assert len(scheduler.launched) == 1
