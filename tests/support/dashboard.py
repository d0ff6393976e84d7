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
import textual.app
import textual.pilot
import textual.screen
from support.canned import NOW
from support.waiting import NEVER, PATIENCE, not_within
from textual._compositor import Compositor
from textual._context import active_app
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from torchx_tui.backends.api import Scheduler
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.slurm import shared_answer
from torchx_tui.backends.slurm.scheduler import SlurmScheduler
from torchx_tui.guest.host import GuestProcess
from torchx_tui.logs.view import failure
from torchx_tui.settings.config import Settings
from torchx_tui.tui import command_palette
from torchx_tui.tui.app import TorchXTuiApp
from torchx_tui.tui.launch import component_chooser
from torchx_tui.tui.ui import status
from torchx_tui.tui.ui.bars import KeyBar
from torchx_tui.tui.ui.state import UiStateFile

# Between two looks at the application (s), and for how many looks in a row it has to stand still.
_STEP = 0.02
_LOOKS = 4
# How many turns the event loop has at least in the second that an application without rest is given.
_TURNS = 200
# Timers that are due after longer than this (s) are not waited for: messages that go away, looks at the backends.
_SOON = 1.0


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
    here = threading.get_ident()
    return {thread for thread, frame in sys._current_frames().items() if thread != here and _works(frame)}


@contextmanager
def slurm_app(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TorchXTuiApp]:
    """Give the application on Slurm's commands, or on programs that stand for them, asked five times a second."""
    monkeypatch.setattr(shared_answer, "_SLOW_FACTOR", 0.0)
    monkeypatch.setattr(shared_answer, "_QUICK_FACTOR", 0.0)
    scheduler = SlurmScheduler("torchx", interval=0.2, quick_interval=0.2)
    app = make_app(scheduler, folder, name="slurm")
    monkeypatch.setattr(app.runner, "scheduler_names", lambda: ["slurm"])
    yield app
    scheduler.close()


async def handled(*_limits: float) -> None:
    """Wait until the application has handled every message; one that never rests is given a second.

    A process that was stopped for that second has handled nothing: the event loop had its turns as well.
    """
    app = active_app.get()
    deadline, turns = time.monotonic() + 1.0, 0
    await asyncio.sleep(0.001)
    while not app._exit and (time.monotonic() < deadline or turns < _TURNS):
        turns += 1
        if not _has_messages(app):
            if not app.screen._callbacks:
                return
            # They are called once the screen is drawn.
            app.screen._on_timer_update()
        await asyncio.sleep(0.001)


# Textual's own waits until the process uses no CPU time: 40 ms for each key, and up to a second where threads work.
for module in (textual.app, textual.pilot):
    vars(module)["wait_for_idle"] = handled
# A screen has handled what it was sent, however busy the machine is.
Pilot._wait_for_screen.__defaults__ = (PATIENCE,)
# Nobody looks: several changes are laid out and drawn together.
textual.screen.UPDATE_PERIOD = 0.1
# What goes away by itself, or is left out where it takes long, would depend on how busy the machine is.
status.STATUS_SECONDS = NEVER
component_chooser._JOURNAL_PATIENCE = NEVER
command_palette._COMPONENTS_WAIT = NEVER
failure._MAX_SECONDS = NEVER


# Whether an application draws what changes. Without a terminal it throws away what it has drawn, a third of its time; a
# picture is drawn all the same. Random keys draw: what raises while it draws is a fault as well.
draws = False
_render_update = Compositor.render_update


def _render_if_seen(compositor: Compositor, full: bool = False, **options: Any) -> Any:
    if full or draws:
        return _render_update(compositor, full, **options)
    compositor._dirty_regions.clear()
    return None


Compositor.render_update = _render_if_seen  # type: ignore[method-assign]


# Each application would parse the same style sheets, which takes as long as drawing its screen.
_parse_rules = Stylesheet._parse_rules
_parsed: dict[Any, list[RuleSet]] = {}


def _parse_once(sheet: Stylesheet, css: str, *where: Any, **more: Any) -> list[RuleSet]:
    key = (css, where, *more.items(), *sheet._variables.items())
    if key not in _parsed:
        _parsed[key] = _parse_rules(sheet, css, *where, **more)
    return _parsed[key]


Stylesheet._parse_rules = _parse_once  # type: ignore[method-assign]


def _has_messages(app: App[Any]) -> bool:
    """Return whether a message waits or is being handled."""
    pumps = [app, *(widget for screen in app.screen_stack for widget in screen.walk_children(with_self=True))]
    return not all(_rests(pump._message_queue) for pump in pumps)


def _rests(queue: Any) -> bool:
    """Return whether a queue is empty and its reader waits, having handled what there was."""
    return queue.empty() and bool(queue.ready_event._waiters)


def _has_work(app: App[Any]) -> bool:
    """Return whether anything may change the screen soon: a message, a worker, a thread, a timer, what is not drawn."""
    screen = app.screen
    if _has_messages(app) or screen._callbacks or any(not worker.is_finished for worker in app.workers):
        return True
    if screen._dirty_widgets or screen._layout_required or screen._repaint_required or screen._recompose_required:
        return True
    timers = [timer for widget in screen.walk_children(with_self=True) for timer in widget._timers]
    return any(_is_due(timer) for timer in timers) or not _working() <= _left_by_others.get(app, set())


def _busy(app: App[Any]) -> str:
    """Return who has messages, which workers run, and where other threads are, for a message."""
    pumps = [app, *(widget for screen in app.screen_stack for widget in screen.walk_children(with_self=True))]
    frames, threads = sys._current_frames(), _working() - _left_by_others.get(app, set())
    stacks = [traceback.format_stack(frames[thread]) for thread in threads if thread in frames]
    screen = app.screen
    flags = (screen._dirty_widgets, screen._layout_required, screen._repaint_required, screen._recompose_required)
    return f"{[pump for pump in pumps if not _rests(pump._message_queue)]} {list(app.workers)} {flags} {stacks}"


def _is_due(timer: Any) -> bool:
    return timer._repeat == 0 and timer._interval < _SOON and timer._task is not None and not timer._task.done()


def _works(frame: Any) -> bool:
    """Return whether a thread is in our code, and not in a wait there that goes on; or comes to its work just now."""
    if frame.f_code is threading.Condition.wait.__code__ and (waiter := frame.f_locals.get("waiter")):
        return not waiter.locked()
    if frame.f_code is pool._worker.__code__ and "work_queue" in frame.f_locals:
        return frame.f_locals.get("work_item") is not None or not frame.f_locals["work_queue"].empty()
    if frame.f_code is GuestProcess.read.__code__ and frame.f_locals["deadline"] is None:
        # A plugin is asked nothing.
        return False
    # A thread that has not come to its work yet has no more than what `threading` begins it with.
    begins = True
    while frame is not None and not (name := frame.f_globals.get("__name__", "")).startswith("torchx_tui."):
        begins = begins and name == threading.__name__
        frame = frame.f_back
    return begins or frame is not None


async def settled(pilot: Pilot) -> None:
    """Wait until the screen stands still: nothing is to be handled or drawn, and no thread works on anything.

    Raises:
        AssertionError: it did not come to rest.
    """
    deadline = time.monotonic() + PATIENCE
    looks = 0
    while looks < _LOOKS:
        assert time.monotonic() < deadline, f"the screen does not come to rest: {_busy(pilot.app)}"
        await asyncio.sleep(_STEP)
        looks = 0 if _has_work(pilot.app) else looks + 1


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
