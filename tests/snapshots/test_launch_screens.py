"""Pictures of the launch form: a role that is open, its dialogs, a sweep, what would be shipped."""

from pathlib import Path

import pytest
from support.dashboard import screen_text, settled, until
from support.launching import ShippingScheduler, form_of, launching_app, preview, ready, row_of, type_into
from support.pictures import SIZES

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
    screen = await form_of(pilot, pilot.app, NAME)
    for name, text in {"data": "corpus.txt", "env": "NCCL_DEBUG=INFO,HF_TOKEN=hf_x", **texts}.items():
        await type_into(pilot, screen, name, text)
    await ready(pilot, screen)
    await until(pilot, lambda: len(screen.query(RoleRule)) == 2, "the roles")
    # How far the form is scrolled depends on what is laid out when a field takes the focus.
    await settled(pilot)
    return screen


@pytest.mark.parametrize("size", SIZES)
def test_a_role_that_is_open(snap_compare, app, size):
    async def run(pilot):
        screen = await filled(pilot)
        screen.query(RoleRule).first().focus()
        await settled(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: screen.editor.form.row(TRAINER, "image"), "its fields")
        await settled(pilot)
        memory = row_of(screen, "memMB", TRAINER).input
        memory.focus()
        await settled(pilot)
        # In one go: how far the form is scrolled would depend on which letters a dry run comes between.
        memory.value = "65536"
        await until(pilot, lambda: row_of(screen, "memMB", TRAINER).field.text == "65536", "the change")
        await ready(pilot, screen)

    assert snap_compare(app, terminal_size=SIZES[size], run_before=run)


def test_pairs_a_line_each(snap_compare, app):
    async def run(pilot):
        screen = await filled(pilot)
        row_of(screen, "env").input.focus()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ItemsDialog), "the lines")
        await pilot.press("enter", *"OMP_NUM_THREADS")
        await until(pilot, lambda: str(pilot.app.screen._words.content), "the error")

    assert snap_compare(app, terminal_size=SIZES["80x24"], run_before=run)


def test_named_resources(snap_compare, app):
    async def run(pilot):
        screen = await filled(pilot)
        screen.query(RoleRule).first().focus()
        await settled(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: screen.editor.form.row(TRAINER, "resource"), "its fields")
        await settled(pilot)
        # What the dry run says takes rows from the form, which scrolls then.
        await until(pilot, lambda: "makes no retries" in screen_text(pilot.app), "the dry run")
        row_of(screen, "resource", TRAINER).input.focus()
        await settled(pilot)
        screen.query_one("#form-scroll").scroll_to_widget(row_of(screen, "resource", TRAINER), animate=False, top=True)
        await settled(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChoiceDialog), "the resources")
        await pilot.press(*"p4", "down")

    assert snap_compare(app, terminal_size=SIZES["120x40"], run_before=run)


def test_a_sweep(snap_compare, app):
    async def run(pilot):
        screen = await filled(pilot, lr="0.1, 0.01", batch="16..64*2")
        await until(
            pilot,
            lambda: screen.editor.is_answered and screen.editor.session and screen.editor.session.label,
            "the request",
        )
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskDialog), "the question")

    assert snap_compare(app, sizes=SIZES, run_before=run)


def test_what_would_be_shipped(snap_compare, app, tmp_path):
    project = tmp_path / "project"
    (project / "data").mkdir(parents=True)
    for name, size in (("train.py", 5120), ("model.py", 21000), ("notes.md", 310), ("data/a.bin", 9)):
        (project / name).write_bytes(b"x" * size)
    (project / ".dockerignore").write_text("data\n*.md\n")

    async def run(pilot):
        screen = await filled(pilot)
        await type_into(pilot, screen, "workspace", "../project", "launch")
        await until(pilot, lambda: "Workspace" in screen.editor.preview.rule.title.plain, "the tab")
        await pilot.press("ctrl+t", "ctrl+t", "ctrl+t")
        await until(pilot, lambda: " left out by " in preview(screen), "the files")

    assert snap_compare(app, terminal_size=(120, 40), run_before=run)
