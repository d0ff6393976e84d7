"""Random keys, clicks, pastes and sizes while the backend fails now and then: nothing breaks, nothing sticks, nothing
grows, and no job is cancelled or deleted without its dialog."""

from __future__ import annotations

import gc
import random
import time
import weakref
from collections.abc import Iterable

import pytest
from support.canned import busy_scheduler
from support.dashboard import make_app, until
from textual import events
from textual.geometry import Size
from textual.screen import Screen

from torchx_tui.backends.job import Job
from torchx_tui.specs.status import AppState
from torchx_tui.tui.app import TorchXTuiApp
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.ui import garbage_collection as garbage
from torchx_tui.tui.ui.dialog import AskDialog

BATCH = 40
# A batch takes some tenths of a second; this long, and something hangs.
PATIENCE = 300.0
_SOAK = (pytest.mark.soak, pytest.mark.timeout(3600))

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_NAMED = {
    "slash": "/", "colon": ":", "question_mark": "?", "asterisk": "*", "number_sign": "#", "ampersand": "&",
    "less_than_sign": "<", "greater_than_sign": ">", "left_square_bracket": "[", "right_square_bracket": "]",
    "exclamation_mark": "!", "space": " ", "tilde": "~", "left_parenthesis": "(", "full_stop": ".",
}  # fmt: skip
_KEYS = [
    *_LETTERS, *_NAMED, "enter", "escape", "escape", "tab", "shift+tab", "up", "down", "left", "right", "home", "end",
    "pageup", "pagedown", "backspace", "delete", "f1",
    *(f"ctrl+{letter}" for letter in "adefgklnoprstuvwxyz"),
]  # fmt: skip
_PASTES = ["demo", "4", "a\nb\r\nc\td", "\x1b[31m\x00[/red]", "state:failed", "9" * 400, "👩‍🚀界" * 20, " \n" * 50]
_SIZES = [(80, 24), (120, 40), (200, 50), (79, 20), (40, 8), (10, 3), (160, 34)]


def key_event(key: str) -> events.Key:
    return events.Key(key, _NAMED.get(key) or (key if len(key) == 1 else None))


def mouse_event(chance: random.Random, size: tuple[int, int]) -> list[events.Event]:
    x, y = chance.randrange(size[0]), chance.randrange(size[1])
    kinds = chance.choice([[events.MouseDown, events.MouseUp], [events.MouseScrollUp], [events.MouseScrollDown],
                           [events.MouseMove], [events.MouseDown, events.MouseMove, events.MouseUp]])  # fmt: skip
    return [kind(None, x, y, 0, 0, 1, False, False, False, screen_x=x, screen_y=y) for kind in kinds]


def next_events(chance: random.Random, state: dict) -> list[events.Event]:
    roll = chance.random()
    if roll < 0.9:
        return [key_event(chance.choice(_KEYS))]
    if roll < 0.91:
        return [events.Paste(chance.choice(_PASTES))]
    if roll < 0.99:
        return mouse_event(chance, state["size"])
    state["size"] = chance.choice(_SIZES)
    size = Size(*state["size"])
    return [events.Resize(size, size)]


# Of some hundred that are opened.
MOST_LEFT = 10


def left_screens(app: TorchXTuiApp, others: Iterable[Screen]) -> list[Screen]:
    """The screens that are still in memory and neither open nor another app's, such as that of a test before."""
    gc.collect()
    known = {id(screen) for screen in (*app.screen_stack, *others)}
    return [found for found in gc.get_objects() if isinstance(found, Screen) and id(found) not in known]


@pytest.fixture
def asked(monkeypatch):
    """Count jobs whose dialog was confirmed, and those that were acted on."""
    counts = {"confirmed": 0, "acted": 0}
    dismiss = AskDialog.dismiss

    def count_confirmed(self, result=None):
        counts["confirmed"] += self.count if result == "y" else 0
        return dismiss(self, result)

    monkeypatch.setattr(AskDialog, "dismiss", count_confirmed)
    monkeypatch.setattr(TorchXTuiApp, "action_leave", lambda self: None)
    monkeypatch.setattr(TorchXTuiApp, "action_interrupt", lambda self: None)
    return counts


@pytest.mark.parametrize(
    ("seed", "count"),
    [
        pytest.param(0, 1_000, marks=pytest.mark.slow),
        *(pytest.param(seed, 5_000, marks=_SOAK) for seed in (1, 2, 3, 4)),
    ],
)
async def test_random_events(tmp_path, monkeypatch, asked, seed, count):
    monkeypatch.chdir(tmp_path)
    chance = random.Random(seed)
    scheduler = busy_scheduler(tmp_path / "logs")
    app = make_app(scheduler, tmp_path)
    for name in ("cancel", "delete"):
        act = getattr(Job, name)

        def counted(job, act=act):
            asked["acted"] += 1
            return act(job)

        monkeypatch.setattr(Job, name, counted)
    state = {"size": (120, 40)}
    others = weakref.WeakSet(found for found in gc.get_objects() if isinstance(found, Screen))
    async with app.run_test(size=state["size"]) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the Jobs screen")
        for batch in range(count // BATCH):
            scheduler.error = ConnectionError("the backend fails") if chance.random() < 0.3 else None
            handle = chance.choice(list(scheduler.apps) or [""])
            if handle and chance.random() < 0.2:
                scheduler.set_state(handle, chance.choice(list(AppState)))
            for _ in range(BATCH):
                for event in next_events(chance, state):
                    app.post_message(event)
            began = time.monotonic()
            await pilot.pause()
            assert time.monotonic() - began < PATIENCE, f"batch {batch}, seed {seed}"
            assert app._exception is None
        scheduler.error = None
        # No modal sticks: escape leads back to the first screen, whatever is open.
        app.post_message(events.Resize(Size(120, 40), Size(120, 40)))

        def is_back() -> bool:
            # A screen that a thread was asked for may come only now.
            if not isinstance(app.screen, JobsScreen):
                app.post_message(key_event("escape"))
            return isinstance(app.screen, JobsScreen)

        for _ in range(30):
            app.post_message(key_event("escape"))
            await pilot.pause(0.02)
        await until(pilot, is_back, "the Jobs screen")
        assert asked["acted"] <= asked["confirmed"]
        # The collector frees the screens that were left, but for the last ones: the contexts of workers that have ended
        # hold them until the next workers start.
        await until(
            pilot, lambda: len(left_screens(app, others)) <= MOST_LEFT, "the screens that were left to be freed"
        )
    assert app._exception is None


@pytest.fixture
def usual_thresholds():
    """Give the collector its thresholds back, and count as living what was frozen."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


class _Part:
    """A part of a screen that refers to itself."""

    def __init__(self):
        self.itself = self


def left_screen(parts=5_000):
    """Make a screen's parts, old enough that only a look at all objects finds them, and return one of them."""
    made = [_Part() for _ in range(parts)]
    gc.collect(1)
    return weakref.ref(made[0])


def test_left_screens_are_freed_while_keys_come_without_a_pause(usual_thresholds):
    garbage.spare_living()
    living, most = [], 0
    for _ in range(400):
        living = [part for part in [*living, left_screen()] if part() is not None]
        most = max(most, len(living))
    assert most < 200


def test_left_screens_are_freed_once_nobody_types(usual_thresholds):
    garbage.spare_living()
    gc.collect()
    left = [left_screen(10) for _ in range(5)]
    garbage.collect_while_idle()
    assert all(part() is None for part in left)
