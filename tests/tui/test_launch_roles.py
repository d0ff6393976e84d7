"""What a form changes in roles, ships as a workspace, and knows of jobs of others."""

import asyncio
import copy
import threading
from pathlib import Path

import pytest
from support.launching import LaunchingScheduler, ShippingScheduler, launching_app
from support.screens import Launch, jobs_of, launch_of
from support.waiting import PATIENCE
from textual.widgets import Input, TextArea

from torchx_tui.backends.api import DescribeAppResponse
from torchx_tui.specs.mounts import BindMount
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState
from torchx_tui.tui.launch import work as launch_work
from torchx_tui.tui.launch.field_dialogs import ChoiceDialog, ItemsDialog
from torchx_tui.tui.launch.form_editor import FormEditor
from torchx_tui.tui.launch.form_field import Origin, role_section
from torchx_tui.tui.launch.role_rule import RoleRule

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
TALL = (140, 50)
TRAINER = role_section("trainer")


@pytest.fixture
def scheduler():
    return ShippingScheduler()


@pytest.fixture
def app(scheduler, tmp_path, monkeypatch):
    made = launching_app(scheduler, tmp_path, monkeypatch)
    Path("jobs.py").write_text(HEAD + JOB)
    return made


async def with_role(launch: Launch) -> None:
    """Open the fields of the role trainer."""
    await launch.ready()
    await launch.open_role("trainer")


async def submitted(launch: Launch, scheduler) -> AppDef:
    await launch.submit()
    return scheduler.launched[-1]


async def test_a_role_shows_and_takes_values(app, scheduler):
    async with launch_of(app, NAME, TALL) as launch:
        await with_role(launch)
        trainer, reader = launch.screen.query(RoleRule)
        assert (trainer.info.plain, reader.info.plain) == ("2 replicas, 2 cpu, 1 GB", "1 replica")
        assert launch.value("args", TRAINER) == "--fast"
        await launch.type(
            TRAINER, num_replicas="5", image="image:2", memMB="4096", env="A=1,B='x, y'", max_retries="3",
            mounts="type=bind,src=/data,dst=/in,readonly", args="--slow 'two words'",
        )  # fmt: skip
        await launch.until(lambda: "7 changed" in trainer.info.plain, "the sum")
        await launch.ready()
        made = await submitted(launch, scheduler)
        role = made["trainer"]
        assert (role.num_replicas, role.image, role.max_retries) == (5, "image:2", 3)
        assert (role.resource.cpu, role.resource.memMB) == (2, 4096)
        assert (role.env["A"], role.env["B"]) == ("1", "x, y")
        assert role.args == ["--slow", "two words"]
        assert role.mounts == [BindMount("/data", "/in", read_only=True)]
        assert made["reader"].image == "image:1"


async def test_late_values_of_another_scheduler_are_dropped(app, scheduler, monkeypatch):
    asked, goes_on, other, scheduler_of = (
        threading.Event(),
        threading.Event(),
        copy.copy(scheduler),
        app.runner.scheduler,
    )

    def late():
        asked.set()
        goes_on.wait(PATIENCE)
        return {"log_dir": ["/late"]}

    monkeypatch.setattr(scheduler, "known_values", late, raising=False)
    monkeypatch.setattr(other, "known_values", lambda: {"log_dir": ["/other"]}, raising=False)
    monkeypatch.setattr(app.runner, "scheduler_names", lambda: ["local_cwd", "other"])
    monkeypatch.setattr(app.runner, "scheduler", lambda name: other if name == "other" else scheduler_of(name))
    async with launch_of(app, NAME, TALL) as launch:
        await launch.until(asked.is_set, "the question")
        launch.form.scheduler.choices = ("local_cwd", "other")
        launch.form.scheduler.focus()
        await launch.press(
            "space", until=lambda: launch.field("log_dir", "option").known == ("/other",), what="the other's values"
        )
        goes_on.set()
        await launch.settled()
        assert launch.field("log_dir", "option").known == ("/other",)


async def test_changes_of_a_role_are_copied_and_edited_again(app, scheduler):
    async with launch_of(app, NAME, TALL) as launch:
        await with_role(launch)
        await launch.type(TRAINER, num_replicas="5")
        await launch.ready()
        assert "torchx-tui run" in launch.preview()
        assert "--set trainer.num_replicas=5" in " ".join(launch.preview().split())
        table = await launch.submit()
        (record,) = app.runner.journal.records()
        assert record.overrides == {"trainer": {"num_replicas": "5"}}
        await table.until(table.at, "the job")
        again = await table.edit()
        await again.shows("ready", on="words")
        assert (again.model.plan().overrides, again.model.diff(record)) == (record.overrides, [])


async def test_an_argument_changes_a_role_unless_it_was_typed(app):
    async with launch_of(app, NAME, TALL) as launch:
        await with_role(launch)
        await launch.type(count="7")
        await launch.has(TRAINER, num_replicas="7")
        await launch.type(TRAINER, num_replicas="9")
        await launch.type(count="3")
        await launch.until(lambda: launch.field("num_replicas", TRAINER).default == "3", "three replicas")
        assert launch.value("num_replicas", TRAINER) == "9"


async def test_a_named_resource_is_searched_for(app, scheduler):
    async with launch_of(app, NAME, (120, 50)) as launch:
        await with_role(launch)
        await launch.type(TRAINER, resource="none of them")
        dialog = await launch.open(ChoiceDialog, "enter")
        assert dialog.cursor == 0
        rows = [row.plain for row in dialog.rows()]
        assert rows[:2] == ["none".ljust(57), f"{'aws_c5.18xlarge':<40}   72    0  136.3"]
        assert f"{' ' * 41}  cpu  gpu     GB" in launch.drawn()
        # A key that comes before the list knows of the last letter counts in what was typed for.
        dialog.query_one(Input).value = "p4d"
        dialog.action_move(1)
        await launch.settled()
        assert dialog.cursor == 1
        dialog.action_move(-1)
        await launch.back("enter")
        await launch.has(TRAINER, resource="aws_p4d.24xlarge")
        # The next time it begins with what was chosen.
        dialog = await launch.open(ChoiceDialog, "enter")
        await launch.until(lambda: dialog.rows()[dialog.cursor].plain.split()[0] == "aws_p4d.24xlarge", "the resource")
        await launch.back("escape")
        await launch.ready()
        made = await submitted(launch, scheduler)
        assert made["trainer"].resource.gpu == 8


async def test_pairs_are_edited_a_line_each(app, scheduler):
    async with launch_of(app, NAME, TALL) as launch:
        await launch.focus("env")
        await launch.open(ItemsDialog, "enter")
        await launch.press(*"A=1", "enter", *"bad", shows="use NAME=value", on="dialog_text")
        await launch.press("ctrl+s")
        assert isinstance(app.screen, ItemsDialog)
        await launch.back(*"=a, b", "ctrl+s")
        await launch.has(env="A=1,bad='a, b'")
        # What was in the field before the lines can be typed again; no lines are no pairs.
        await launch.type(env="")
        await launch.until(lambda: launch.field("env").text == "", "no text")
        for keys in (["ctrl+s"], [*"A=1", "enter", *"bad=a, b", "tab", "enter"]):
            await launch.open(ItemsDialog, "enter")
            await launch.back(*keys)
        await launch.has(env="A=1,bad='a, b'")
        await launch.ready()
        made = await submitted(launch, scheduler)
        assert (made["trainer"].env["A"], made["trainer"].env["bad"]) == ("1", "a, b")


async def test_leaving_the_lines_changes_nothing(app):
    async with launch_of(app, NAME, TALL) as launch:
        await launch.type(tags="a,b")
        dialog = await launch.open(ItemsDialog, "enter")
        assert dialog.query_one(TextArea).text == "a\nb"
        await launch.back(*"ccc", "escape")
        assert launch.value("tags") == "a,b"


# The workspace


@pytest.mark.parametrize("scheduler", [LaunchingScheduler()])
async def test_a_scheduler_without_workspaces_has_no_field(app, scheduler):
    async with launch_of(app, NAME, TALL) as launch:
        assert launch.form.row("launch", "workspace") is None


# Jobs of others


async def test_a_job_of_others_is_edited_from_its_description(app, scheduler):
    role = Role("worker", "busybox", entrypoint="sh", args=["-c", "date"], num_replicas=2, resource=Resource(1, 0, 64))
    half, worker = role_section("half"), role_section("worker")
    scheduler.add("foreign-1", AppState.RUNNING, 1)
    scheduler.described["foreign-1"] = DescribeAppResponse(
        app_id="foreign-1", name="foreign", state=AppState.RUNNING, roles=[role, Role("half", "")],
        cfg={"log_dir": "/logs"}, notes=["worker: activeDeadlineSeconds is not launched again"],
    )  # fmt: skip
    async with jobs_of(app, TALL) as table:
        launch = await table.edit()
        unknown = [(one.section, one.name) for one in launch.model if one.origin is Origin.UNKNOWN]
        assert unknown == [(half, "image"), (half, "entrypoint")]
        assert "missing" in launch.words()
        await launch.type(half, image="busybox", entrypoint="true")
        await launch.type(worker, num_replicas="3")
        await launch.ready()
        await launch.press("ctrl+t")
        # What is not launched again, then what differs from the job.
        words = ["worker: activeDeadlineSeconds is not", "worker num_replicas", "- 2", "+ 3", "half image", "- none"]
        await launch.shows(*words, on="preview")
        assert "log_dir" not in launch.preview()
        made = await submitted(launch, scheduler)
        assert (made["worker"].num_replicas, made["worker"].args) == (3, ["-c", "date"])
        assert (made["half"].image, made["half"].entrypoint, made.name) == ("busybox", "true", "foreign")
        (record,) = app.runner.journal.records()
        assert record.cfg == {"log_dir": "/logs"}


async def test_request_is_compared_with_one_that_repeats_the_job(app, scheduler):
    role = Role("worker", "busybox", entrypoint="sh", args=["-c", "date"], num_replicas=2)
    scheduler.add("foreign-1", AppState.RUNNING, 1)
    scheduler.described["foreign-1"] = DescribeAppResponse(
        app_id="foreign-1", name="foreign", state=AppState.RUNNING, roles=[role], cfg={"log_dir": "/logs"}
    )
    async with jobs_of(app, TALL) as table:
        launch = await table.edit()
        await launch.ready()
        await launch.press("ctrl+t", shows="Same as the job that ran", on="preview")
        await launch.type("option", log_dir="/other")
        await launch.shows("log_dir", "In the request:", "/logs", "/other", on="preview")
        await launch.type("option", log_dir="/logs")
        await launch.shows("Same as the job that ran", on="preview")


async def test_values_of_a_shown_role_are_not_typed(app, monkeypatch):
    typed = []
    monkeypatch.setattr(FormEditor, "on_field_changed", lambda _, message: typed.append((message.name, message.text)))
    async with launch_of(app, NAME, TALL) as launch:
        await with_role(launch)
        await launch.settled()
        assert typed == []
        launch.set("image", "image:2", TRAINER)
        await launch.until(lambda: typed == [("image", "image:2")], "what was typed")


@pytest.mark.parametrize("steps", [1, 3, 5, 8])
async def test_typing_while_roles_are_drawn_loses_no_role(app, steps):
    async with launch_of(app, NAME, TALL) as launch:
        await with_role(launch)
        editor = launch.screen.editor
        fields = len(editor.form.rows)
        drawing = asyncio.create_task(editor.form.show_roles(editor.model))
        for _ in range(steps):
            await asyncio.sleep(0)
        # As the worker of a dry run is at the next letter.
        drawing.cancel()
        await launch.settled()
        assert [rule.role for rule in launch.screen.query(RoleRule)] == ["trainer", "reader"]
        assert len(editor.form.rows) == fields


def test_a_broken_named_resource_is_not_offered(monkeypatch):
    monkeypatch.setattr(launch_work, "named_resource_names", lambda: ["gpu.none", "gpu.small"])
    assert [name for name, *_ in launch_work.resource_rows()] == ["gpu.small"]
