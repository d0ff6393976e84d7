"""Pictures of the launch form: a role that is open, its dialogs, a sweep, what would be shipped."""

from pathlib import Path

import pytest
from support.launching import ShippingScheduler, launching_app
from support.pictures import SIZES
from support.screens import form_of

from torchx_tui.tui.launch.field_dialogs import ChoiceDialog, ItemsDialog
from torchx_tui.tui.launch.form_field import role_section
from torchx_tui.tui.launch.role_rule import RoleRule
from torchx_tui.tui.ui.dialog import AskDialog

JOB = '''
def train(data: str, lr: float = 0.1, batch: int = 32, mode: str = "fast", env: Optional[Dict[str, str]] = None,
          h: str = "", *extra: str) -> AppDef:
    """Train a model on data.

    Args:
        data: what is read, a file or a folder
        lr: learning rate of the first step
        batch: samples of a step, on each replica
        mode: how precise it is
        env: environment variables of the trainers
        h: a named resource
        extra: what the program is given besides
    """
    return AppDef("train", [
        Role("trainer", "ghcr.io/acme/train:2026-11", entrypoint="python", args=["train.py", data, str(lr), str(batch)],
             env=env or {}, num_replicas=4, max_retries=2, resource=Resource(8, 1, 32768)),
        Role("reader", "ghcr.io/acme/read:7", entrypoint="read", args=[data], resource=Resource(2, 0, 4096)),
    ])
'''
HEAD = "from typing import Dict, Optional\nfrom torchx_tui.specs import AppDef, Resource, Role\n"
NAME = "train.py:train"
TRAINER = role_section("trainer")


@pytest.fixture
def app(tmp_path, monkeypatch):
    scheduler = ShippingScheduler()
    made = launching_app(scheduler, tmp_path, monkeypatch)
    Path("train.py").write_text(HEAD + JOB)
    return made


async def filled(pilot, **texts):
    """Open the form and fill it."""
    launch = await form_of(pilot, NAME)
    await launch.type(**{"data": "corpus.txt", "env": "NCCL_DEBUG=INFO,HF_TOKEN=hf_x", **texts})
    await launch.ready()
    await launch.until(lambda: len(launch.screen.query(RoleRule)) == 2, "the roles")
    # How far the form is scrolled depends on what is laid out when a field takes the focus.
    await launch.settled()
    return launch


async def with_trainer(pilot):
    """Open and fill the form, and open the fields of the role trainer."""
    launch = await filled(pilot)
    launch.screen.query(RoleRule).first().focus()
    await launch.settled()
    await launch.press("enter", until=lambda: launch.form.row(TRAINER, "image"), what="its fields")
    await launch.settled()
    return launch


@pytest.mark.parametrize("size", SIZES)
def test_a_role_that_is_open(snap_compare, app, size):
    async def run(pilot):
        launch = await with_trainer(pilot)
        await launch.focus("memMB", TRAINER)
        await launch.settled()
        # In one go: how far the form is scrolled would depend on which letters a dry run comes between.
        launch.set("memMB", "65536", TRAINER)
        await launch.until(lambda: launch.field("memMB", TRAINER).text == "65536", "the change")
        await launch.ready()

    assert snap_compare(app, terminal_size=SIZES[size], run_before=run)


def test_pairs_a_line_each(snap_compare, app):
    async def run(pilot):
        launch = await filled(pilot)
        launch.row("env").input.focus()
        await launch.open(ItemsDialog, "enter")
        await launch.press("enter", *"OMP_NUM_THREADS", shows="use NAME=value", on="drawn")

    assert snap_compare(app, terminal_size=SIZES["80x24"], run_before=run)


def test_named_resources(snap_compare, app):
    async def run(pilot):
        launch = await with_trainer(pilot)
        # What the dry run says takes rows from the form, which scrolls then.
        await launch.shows("makes no retries", on="drawn")
        row = launch.row("resource", TRAINER)
        row.input.focus()
        await launch.settled()
        launch.screen.query_one("#form-scroll").scroll_to_widget(row, animate=False, top=True)
        await launch.settled()
        await launch.open(ChoiceDialog, "enter")
        await launch.press(*"p4", "down")

    assert snap_compare(app, terminal_size=SIZES["120x40"], run_before=run)


def test_a_sweep(snap_compare, app):
    async def run(pilot):
        launch = await filled(pilot, lr="0.1, 0.01", batch="16..64*2")
        editor = launch.editor
        await launch.until(lambda: editor.is_answered and editor.session and editor.session.label, "the request")
        await launch.open(AskDialog, "ctrl+s")

    assert snap_compare(app, sizes=SIZES, run_before=run)


def test_what_would_be_shipped(snap_compare, app, tmp_path):
    project = tmp_path / "project"
    (project / "data").mkdir(parents=True)
    for name, size in (("train.py", 5120), ("model.py", 21000), ("notes.md", 310), ("data/a.bin", 9)):
        (project / name).write_bytes(b"x" * size)
    (project / ".dockerignore").write_text("data\n*.md\n")

    async def run(pilot):
        launch = await filled(pilot)
        await launch.type("launch", workspace="../project")
        await launch.shows("Workspace", on="tabs")
        await launch.press("ctrl+t", "ctrl+t", "ctrl+t", shows=" left out by ", on="preview")

    assert snap_compare(app, terminal_size=(120, 40), run_before=run)
