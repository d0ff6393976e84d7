"""What a form changes in roles, ships as a workspace, and knows of jobs of others."""

from pathlib import Path

import pytest
from support.dashboard import screen_text, settled, until
from support.launching import (
    LaunchingScheduler,
    ShippingScheduler,
    drawn,
    form_of,
    launching_app,
    model_of,
    preview,
    ready,
    row_of,
    type_into,
    words,
)
from textual.widgets import TextArea

from torchx_tui.backends.api import DescribeAppResponse
from torchx_tui.specs import AppDef, AppState, BindMount, Resource, Role
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch import work as launch_work
from torchx_tui.tui.launch.field_dialogs import ChoiceDialog, ItemsDialog
from torchx_tui.tui.launch.form_editor import FormEditor
from torchx_tui.tui.launch.form_field import role_section
from torchx_tui.tui.launch.messages import ValuesKnown
from torchx_tui.tui.launch.role_rule import RoleRule
from torchx_tui.tui.launch.screen import LaunchScreen

JOB = '''
def job(count: int = 2, env: Optional[Dict[str, str]] = None, tags: Optional[List[str]] = None) -> AppDef:
    """Train."""
    return AppDef("job", [
        Role("trainer", "image:1", entrypoint="train", args=["--fast"], env=env or {}, num_replicas=count,
             resource=Resource(2, 0, 1024)),
        Role("reader", "image:1", entrypoint="read"),
    ])
'''
HEAD = "from typing import Dict, List, Optional\nfrom torchx_tui.specs import AppDef, BindMount, Resource, Role\n"
NAME = "jobs.py:job"
TRAINER = role_section("trainer")


@pytest.fixture
def scheduler():
    return ShippingScheduler()


@pytest.fixture
def app(scheduler, tmp_path, monkeypatch):
    made = launching_app(scheduler, tmp_path, monkeypatch)
    Path("jobs.py").write_text(HEAD + JOB)
    return made


async def with_role(pilot, app, role: str = "trainer") -> LaunchScreen:
    """Open the form and one of its roles."""
    screen = await form_of(pilot, app, NAME)
    await ready(pilot, screen)
    await until(pilot, lambda: len(screen.query(RoleRule)) == 2, "the roles")
    next(rule for rule in screen.query(RoleRule) if rule.role == role).focus()
    await pilot.press("enter")
    await until(pilot, lambda: screen.editor.form.row(role_section(role), "image"), "its fields")
    return screen


def name_at_cursor(screen) -> str:
    return screen.rows()[screen.cursor].plain.split()[0] if isinstance(screen, ChoiceDialog) else ""


async def submit(pilot, app, scheduler) -> AppDef:
    await pilot.press("ctrl+s")
    await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the launch")
    return scheduler.launched[-1]


async def test_a_role_says_what_it_has_and_takes_what_is_changed(app, scheduler):
    async with app.run_test(size=(120, 50)) as pilot:
        screen = await with_role(pilot, app)
        (trainer, reader) = screen.query(RoleRule)
        assert trainer.info.plain == "2 replicas, 2 cpu, 1 GB"
        assert reader.info.plain == "1 replica"
        assert row_of(screen, "args", TRAINER).input.value == "--fast"
        for name, text in {
            "num_replicas": "5", "image": "image:2", "memMB": "4096", "env": "A=1,B='x, y'", "max_retries": "3",
            "mounts": "type=bind,src=/data,dst=/in,readonly", "args": "--slow 'two words'",
        }.items():  # fmt: skip
            await type_into(pilot, screen, name, text, TRAINER)
        await until(pilot, lambda: "7 changed" in trainer.info.plain, "the sum")
        await ready(pilot, screen)
        made = await submit(pilot, app, scheduler)
        role = made["trainer"]
        assert (role.num_replicas, role.image, role.max_retries) == (5, "image:2", 3)
        assert (role.resource.cpu, role.resource.memMB) == (2, 4096)
        assert (role.env["A"], role.env["B"]) == ("1", "x, y")
        assert role.args == ["--slow", "two words"]
        assert role.mounts == [BindMount("/data", "/in", read_only=True)]
        assert made["reader"].image == "image:1"


async def test_what_an_option_can_be_is_offered_where_its_own_scheduler_says_so(app, monkeypatch):
    monkeypatch.setattr(app.runner, "known_values", lambda _: {"log_dir": ["/a", "/b"]})
    async with app.run_test(size=(120, 50)) as pilot:
        screen = await form_of(pilot, app, NAME)
        row_of(screen, "log_dir", "option").input.focus()
        await until(pilot, lambda: drawn(screen, "#field-help").endswith("here: /a, /b"), "the values")
        screen.editor.on_values_known(ValuesKnown("other", {"log_dir": ["/c"]}))
        assert drawn(screen, "#field-help").endswith("here: /a, /b")


async def test_what_was_changed_is_edited_again_and_copied(app, scheduler):
    async with app.run_test(size=(140, 50)) as pilot:
        screen = await with_role(pilot, app)
        await type_into(pilot, screen, "num_replicas", "5", TRAINER)
        await ready(pilot, screen)
        await pilot.press("ctrl+t", "ctrl+t")
        assert "torchx-tui run" in preview(screen)
        assert "--set trainer.num_replicas=5" in preview(screen)
        await submit(pilot, app, scheduler)
        (record,) = app.runner.journal.records()
        assert record.overrides == {"trainer": {"num_replicas": "5"}}
        await until(pilot, lambda: app.screen.table.cursor_row, "the job")
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.query(RoleRule), "the form")
        screen = app.screen
        await until(pilot, lambda: "ready" in words(screen), "a dry run")
        assert model_of(screen).plan().overrides == record.overrides
        assert model_of(screen).diff(record) == []


async def test_an_argument_changes_what_a_role_has_unless_it_was_changed(app):
    async with app.run_test(size=(120, 50)) as pilot:
        screen = await with_role(pilot, app)
        await type_into(pilot, screen, "count", "7")
        await until(pilot, lambda: row_of(screen, "num_replicas", TRAINER).input.value == "7", "seven replicas")
        await type_into(pilot, screen, "num_replicas", "9", TRAINER)
        await type_into(pilot, screen, "count", "3")
        await until(pilot, lambda: row_of(screen, "num_replicas", TRAINER).field.default == "3", "three replicas")
        assert row_of(screen, "num_replicas", TRAINER).input.value == "9"


async def test_a_named_resource_is_searched_for(app, scheduler):
    async with app.run_test(size=(120, 50)) as pilot:
        screen = await with_role(pilot, app)
        await type_into(pilot, screen, "resource", "none of them", TRAINER)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog), "the resources")
        assert app.screen.cursor == 0
        rows = [row.plain for row in app.screen.rows()]
        assert rows[:2] == ["none".ljust(57), f"{'aws_c5.18xlarge':<40}   72    0  136.3"]
        assert f"{' ' * 41}  cpu  gpu     GB" in screen_text(app)
        # A key that comes before the list knows of the last letter counts in what was typed for.
        app.screen._search.value = "p4d"
        app.screen.action_move(1)
        await pilot.pause()
        assert app.screen.cursor == 1
        app.screen.action_move(-1)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen, "the form")
        await until(pilot, lambda: row_of(screen, "resource", TRAINER).input.value == "aws_p4d.24xlarge", "its name")
        # The next time it begins with what was chosen.
        await pilot.press("enter")
        await until(pilot, lambda: name_at_cursor(app.screen) == "aws_p4d.24xlarge", "the resource")
        await pilot.press("escape")
        await ready(pilot, screen)
        made = await submit(pilot, app, scheduler)
        assert made["trainer"].resource.gpu == 8


async def test_pairs_are_edited_a_line_each(app, scheduler):
    async with app.run_test(size=(120, 50)) as pilot:
        screen = await form_of(pilot, app, NAME)
        row_of(screen, "env").input.focus()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ItemsDialog), "the lines")
        dialog = app.screen
        await pilot.press(*"A=1", "enter", *"bad")
        await until(pilot, lambda: "use NAME=value" in str(dialog._words.render()), "the error")
        await pilot.press("ctrl+s")
        assert app.screen is dialog
        await pilot.press(*"=a, b", "ctrl+s")
        await until(pilot, lambda: app.screen is screen, "the form")
        await until(pilot, lambda: row_of(screen, "env").input.value == "A=1,bad='a, b'", "the text")
        # What was in the field before the lines can be typed again; no lines are no pairs.
        await type_into(pilot, screen, "env", "")
        await until(pilot, lambda: row_of(screen, "env").field.text == "", "no text")
        for keys in (["ctrl+s"], [*"A=1", "enter", *"bad=a, b", "tab", "enter"]):
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, ItemsDialog), "the lines")
            await pilot.press(*keys)
            await until(pilot, lambda: app.screen is screen, "the form")
        await until(pilot, lambda: row_of(screen, "env").input.value == "A=1,bad='a, b'", "the text")
        await ready(pilot, screen)
        made = await submit(pilot, app, scheduler)
        assert (made["trainer"].env["A"], made["trainer"].env["bad"]) == ("1", "a, b")


async def test_leaving_the_lines_changes_nothing(app):
    async with app.run_test(size=(120, 50)) as pilot:
        screen = await form_of(pilot, app, NAME)
        await type_into(pilot, screen, "tags", "a,b")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ItemsDialog), "the lines")
        assert app.screen.query_one(TextArea).text == "a\nb"
        await pilot.press(*"ccc", "escape")
        await until(pilot, lambda: app.screen is screen, "the form")
        assert row_of(screen, "tags").input.value == "a,b"


async def test_secrets_are_not_drawn(app):
    async with app.run_test(size=(120, 50)) as pilot:
        screen = await form_of(pilot, app, NAME)
        await type_into(pilot, screen, "env", "HF_TOKEN=geheim,A=1")
        row_of(screen, "count").input.focus()
        await ready(pilot, screen)
        await pilot.pause()
        drawn = app.export_screenshot()
        assert "geheim" not in drawn
        assert row_of(screen, "env").input.value == "HF_TOKEN=geheim,A=1"


# The workspace


async def test_what_would_be_shipped_is_listed(app, tmp_path):
    project = tmp_path / "project"
    (project / "data").mkdir(parents=True)
    (project / "train.py").write_text("x" * 2000)
    (project / "data" / "large.bin").write_bytes(b"0" * 50_000)
    (project / ".dockerignore").write_text("data\n")
    async with app.run_test(size=(140, 50)) as pilot:
        screen = await form_of(pilot, app, NAME)
        await type_into(pilot, screen, "workspace", str(project), "launch")
        await until(pilot, lambda: "Workspace" in screen.editor.preview.rule.title.plain, "the tab")
        await pilot.press("ctrl+t", "ctrl+t", "ctrl+t")
        await until(pilot, lambda: "2 files, 2.0 KB" in preview(screen), "the files")
        assert "train.py" in preview(screen)
        assert "1 left out by .dockerignore: data" in preview(screen)
        assert "large.bin" not in preview(screen)
        await type_into(pilot, screen, "workspace", f"{project}/nosuch", "launch")
        await until(pilot, lambda: "nosuch" in preview(screen), "why not")


@pytest.mark.parametrize("scheduler", [LaunchingScheduler()])
async def test_a_scheduler_that_takes_no_workspace_has_no_field_for_it(app, scheduler):
    async with app.run_test(size=(120, 50)) as pilot:
        screen = await form_of(pilot, app, NAME)
        assert screen.editor.form.row("launch", "workspace") is None


# Jobs of others


async def test_a_job_of_others_is_edited_from_what_its_backend_tells(app, scheduler):
    role = Role("worker", "busybox", entrypoint="sh", args=["-c", "date"], num_replicas=2, resource=Resource(1, 0, 64))
    half = Role("half", "")
    scheduler.add("foreign-1", AppState.RUNNING, 1)
    scheduler.described["foreign-1"] = DescribeAppResponse(
        app_id="foreign-1", name="foreign", state=AppState.RUNNING, roles=[role, half], cfg={"log_dir": "/logs"}
    )
    async with app.run_test(size=(120, 50)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.cursor_row, "the job")
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.editor.form.rows, "the form")
        screen = app.screen
        unknown = [(one.section, one.name) for one in model_of(screen) if one.origin == "unknown"]
        assert unknown == [(role_section("half"), "image"), (role_section("half"), "entrypoint")]
        assert "missing" in words(screen)
        await type_into(pilot, screen, "image", "busybox", role_section("half"))
        await type_into(pilot, screen, "entrypoint", "true", role_section("half"))
        await type_into(pilot, screen, "num_replicas", "3", role_section("worker"))
        await ready(pilot, screen)
        made = await submit(pilot, app, scheduler)
        assert (made["worker"].num_replicas, made["worker"].args) == (3, ["-c", "date"])
        assert (made["half"].image, made["half"].entrypoint) == ("busybox", "true")
        assert made.name == "foreign"
        (record,) = app.runner.journal.records()
        assert record.cfg == {"log_dir": "/logs"}


async def test_what_a_role_is_shown_with_is_not_taken_for_typed(app, monkeypatch):
    typed = []
    monkeypatch.setattr(FormEditor, "on_field_changed", lambda _, message: typed.append((message.name, message.text)))
    async with app.run_test(size=(120, 50)) as pilot:
        screen = await with_role(pilot, app)
        await settled(pilot)
        assert typed == []
        row = row_of(screen, "image", TRAINER)
        row.input.value = "image:2"
        await until(pilot, lambda: typed == [("image", "image:2")], "what was typed")


def test_a_named_resource_that_cannot_be_made_is_not_offered(monkeypatch):
    monkeypatch.setattr(launch_work, "named_resource_names", lambda: ["gpu.none", "gpu.small"])
    assert [name for name, *_ in launch_work.resource_rows()] == ["gpu.small"]
