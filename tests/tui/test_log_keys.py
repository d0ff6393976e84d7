"""Every key of the log pane that people may rely on is bound, named, and listed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.canned import busy_scheduler
from support.dashboard import make_app, settled, until
from textual.binding import Binding
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widgets import Input

from torchx_tui.tui.app import TorchXTuiApp
from torchx_tui.tui.command_palette import DashboardCommands
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.logs.pane import LOG_BINDINGS
from torchx_tui.tui.logs.screen import LogsScreen
from torchx_tui.tui.ui.bars import KeyBar
from torchx_tui.tui.ui.keys_screen import bindings_of

# The keys of a log that are fixed, and those of every list.
PROMISED = [
    *"fG/nN&eEwto<>a#g", *"0123456789", *"vySm", *"jk",
    "ctrl+d", "ctrl+u", "pageup", "pagedown", "ctrl+g", "T", "escape", "left", "right", "home", "end",
]  # fmt: skip
README = Path(__file__).parents[2] / "README.md"


def bound() -> dict[str, Binding]:
    keys: dict[str, Binding] = {}
    for binding in LOG_BINDINGS:
        assert isinstance(binding, Binding)
        for key in binding.key.split(","):
            assert key not in keys, f"{key} is bound twice"
            keys[key] = binding
    return keys


@pytest.mark.parametrize("key", PROMISED)
def test_each_promised_key_is_bound_and_can_be_rebound(key: str) -> None:
    name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
    binding = bound()[name]
    assert binding.description
    assert binding.id
    assert binding.id.startswith("logs.")


def test_no_key_is_one_that_multiplexers_or_terminals_take() -> None:
    assert {"ctrl+a", "ctrl+b", "ctrl+i", "ctrl+m", "ctrl+h", "ctrl+j"}.isdisjoint(bound())


def test_the_readme_lists_each_key() -> None:
    [row] = re.findall(r"^\| logs \|(.*)\|$", README.read_text(), re.MULTILINE)
    listed = set(re.findall(r"`([^`]+)`", row))
    shown = {_shown(key) for key, binding in bound().items() if not binding.action.startswith(("replica(", "scroll("))}
    wanted = shown - {"g", "home", "end", "ctrl+d", "ctrl+u", "pageup", "pagedown", "left", "right", "escape"}
    assert wanted <= listed, wanted - listed


def _shown(key: str) -> str:
    return {"slash": "/", "ampersand": "&", "less_than_sign": "<", "greater_than_sign": ">", "number_sign": "#"}.get(
        key, key
    )


async def logs_screen(pilot: Pilot, app: TorchXTuiApp) -> LogsScreen:
    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count > 0)
    await pilot.press("j", "j", "j", "l")
    await until(pilot, lambda: isinstance(app.screen, LogsScreen))
    screen = app.screen
    assert isinstance(screen, LogsScreen)
    await until(pilot, lambda: screen.logs.log_pane.status.line_count > 0)
    return screen


async def test_the_keys_screen_and_the_palette_have_all_of_them(tmp_path: Path) -> None:
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await logs_screen(pilot, app)
        await pilot.press("slash", "x", "enter")
        await until(pilot, lambda: screen.logs.log_pane.check_action("match", (1,)))
        wanted = {binding.description for binding in bound().values()}
        listed = {row.what for rows in bindings_of(app.screen).values() for row in rows}
        assert wanted <= listed, wanted - listed
        offered = {name for name, _, _ in DashboardCommands(app.screen)._key_commands()}
        # Streams that the backend cannot tell apart are not offered, nor what only moves.
        moves = ("stream", "start", "scroll", "page", "side", "replica")
        assert wanted - offered == {
            binding.description for binding in bound().values() if binding.action.startswith(moves)
        }


async def test_the_key_bar_has_hints_that_act(tmp_path: Path) -> None:
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await logs_screen(pilot, app)
        hints = screen.query_one(KeyBar).hints
        hinted = {key for hint in hints for key in hint.key.split()} - {"?"}
        assert hinted <= {_shown(key) for key in bound()}
        assert len(hints) == 10


async def test_the_key_bar_follows_what_the_keys_can_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await logs_screen(pilot, app)
        await settled(pilot)
        bar, pane = screen.query_one(KeyBar), screen.logs.log_pane
        assert next(hint for hint in bar.hints if hint.word == "Search").enabled
        monkeypatch.setattr(pane, "check_action", lambda *_: None)
        pane.refresh_bindings()
        await until(pilot, lambda: not next(hint for hint in bar.hints if hint.word == "Search").enabled, "the hint")


async def test_a_click_on_a_hint_does_what_its_key_does(tmp_path: Path) -> None:
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await logs_screen(pilot, app)
        bar = screen.query_one(KeyBar)
        await until(pilot, lambda: any(hint.word == "Search" and hint.enabled for hint in bar.hints), "the hint")
        await settled(pilot)
        text = bar.render().plain
        await pilot.click(bar, offset=(1 + text.index("Search"), 0))
        await until(pilot, lambda: isinstance(app.focused, Input), "the field")
        # A letter is text now, and so is the key that was clicked.
        await until(pilot, lambda: [hint.key for hint in bar.hints] == ["F1"], "the keys of the field")
