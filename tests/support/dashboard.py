"""The application on a canned scheduler, for Pilot, and how tests wait for it."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import thread as pool
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from support.canned import NOW
from support.waiting import NEVER, PATIENCE, not_within
from textual.app import App
from textual.pilot import Pilot

from torchx_tui.backends.api import Scheduler
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.slurm import shared_answer
from torchx_tui.backends.slurm.scheduler import SlurmScheduler
from torchx_tui.logs.lines import failure
from torchx_tui.settings.config import Settings
from torchx_tui.tui import command_palette, status
from torchx_tui.tui.app import TorchXTuiApp
from torchx_tui.tui.launch import component_picker
from torchx_tui.tui.ui.bars import KeyBar
from torchx_tui.tui.ui_state import UiStateFile

# Between two looks at the application (s), and for how many looks in a row it has to stand still.
_STEP = 0.02
_LOOKS = 3


def make_app(
    scheduler: Scheduler[Any],
    folder: Path,
    *,
    settings: Settings | None = None,
    read_only: bool = False,
    name: str = "local_cwd",
    more: Mapping[str, Scheduler[Any]] = {},
) -> TorchXTuiApp:
    """Return the application on a scheduler and more, by name; its clock stands still."""
    runner = Runner(journal=Journal(folder / "journal"), read_only=read_only, schedulers={name: scheduler, **more})
    app = TorchXTuiApp(
        runner,
        settings or Settings(),
        schedulers=[name, *more],
        now=lambda: NOW,
        ui_state=UiStateFile(folder / "screen.json"),
    )
    app.who = "alice@login03"
    _left_by_others[app] = _working()
    return app


# The numbers of threads that worked when an application was made: an earlier test left them, and they change nothing.
_left_by_others: WeakKeyDictionary[App[Any], set[int]] = WeakKeyDictionary()


def _working() -> set[int]:
    """Return the numbers of the other threads that are in our code."""
    # Those that read the answers of workers do nothing else.
    idle = {thread.ident for thread in threading.enumerate() if thread.name.startswith("worker-")}
    idle.add(threading.get_ident())
    return {thread for thread, frame in sys._current_frames().items() if thread not in idle and _works(frame)}


@contextmanager
def slurm_app(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TorchXTuiApp]:
    """Give the application on Slurm's commands, or on programs that stand for them, asked five times a second."""
    monkeypatch.setattr(shared_answer, "QUICK_ANSWER_S", NEVER)
    scheduler = SlurmScheduler("torchx", interval=0.2, quick_interval=0.2)
    app = make_app(scheduler, folder, name="slurm")
    monkeypatch.setattr(app.runner, "scheduler_names", lambda: ["slurm"])
    yield app
    scheduler.close()


# What goes away by itself, or is left out where it takes long, would depend on how busy the machine is.
status.STATUS_SECONDS = NEVER
component_picker.JOURNAL_PATIENCE = NEVER
command_palette.COMPONENTS_WAIT = NEVER
failure.MAX_SECONDS = NEVER


def _works(frame: Any) -> bool:
    """Return whether a thread is in our code, and not in a wait there that goes on; or comes to its work just now."""
    if frame.f_code is threading.Condition.wait.__code__ and (waiter := frame.f_locals.get("waiter")):
        return not waiter.locked()
    if frame.f_code is pool._worker.__code__ and "work_queue" in frame.f_locals:
        return frame.f_locals.get("work_item") is not None or not frame.f_locals["work_queue"].empty()
    # A thread that has not come to its work yet has no more than what `threading` begins it with.
    begins = True
    while frame is not None and not (name := frame.f_globals.get("__name__", "")).startswith("torchx_tui."):
        begins = begins and name == threading.__name__
        frame = frame.f_back
    return begins or frame is not None


async def settled(pilot: Pilot) -> None:
    """Wait until the screen stands still: its messages are handled, and no worker and no thread of ours does anything.

    Raises:
        AssertionError: it did not come to rest.
    """
    app, deadline, shown, looks = pilot.app, time.monotonic() + 3 * PATIENCE, "", 0
    while looks < _LOOKS:
        await pilot.pause()
        threads = _working() - _left_by_others.get(app, set())
        assert time.monotonic() < deadline, f"the screen does not come to rest: {_stacks(threads)}, {[*app.workers]}"
        before, shown = shown, screen_text(app)
        # Workers that have opened a dialog wait for its answer.
        waiting = ("dialog", "actions") if app.screen.is_modal else ("dialog",)
        is_idle = all(worker.is_finished or worker.group in waiting for worker in app.workers)
        at_rest = shown == before and not threads and is_idle
        looks = looks + 1 if at_rest else 0


def _stacks(threads: set[int]) -> str:
    frames = sys._current_frames()
    return "\n".join("".join(traceback.format_stack(frames[each])) for each in threads if each in frames)


def screen_text(app: App[Any]) -> str:
    """Return what is drawn, line by line."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


def key_bar(app: TorchXTuiApp) -> list[str]:
    """Return the keys that the key bar has, each with its word."""
    return [f"{hint.key} {hint.word}" for hint in app.screen.query_one(KeyBar).hints]


async def until(pilot: Pilot, condition: Callable[[], object], what: str = "") -> None:
    """Wait until a condition is true, letting the application work.

    Raises:
        AssertionError: it stayed false; the message has the condition's variables and the screen.
    """
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"{not_within(PATIENCE, what, condition)}\n{screen_text(pilot.app)}"
        await asyncio.sleep(_STEP)
    await pilot.pause()
