"""Every key of the log pane that people may rely on is bound, named, and listed."""

import re
from pathlib import Path
from typing import Any

import pytest
from support.screens import Logs, jobs_of
from textual.keys import _character_to_key
from textual.widgets import Input

from torchx_tui.tui.command_palette import DashboardCommands
from torchx_tui.tui.logs.pane import LOG_BINDINGS
from torchx_tui.tui.logs.screen import LogsScreen
from torchx_tui.tui.ui.bars import KeyBar
from torchx_tui.tui.ui.keys_screen import bindings_of

# The keys of a log that are fixed, and those of every list.
PROMISED = [
    *"fG/nN&eEwto<>a#g0123456789vySmTjk",
    "ctrl+d", "ctrl+u", "pageup", "pagedown", "ctrl+g", "escape", "left", "right", "home", "end",
]  # fmt: skip
README = Path(__file__).parents[2] / "README.md"
BINDINGS: Any = LOG_BINDINGS
BOUND = {key: binding for binding in BINDINGS for key in binding.key.split(",")}


def shown(key):
    names = {"slash": "/", "ampersand": "&", "less_than_sign": "<", "greater_than_sign": ">", "number_sign": "#"}
    return names.get(key, key)


@pytest.mark.parametrize("key", PROMISED)
def test_promised_key_is_bound_and_can_be_rebound(key):
    binding = BOUND[_character_to_key(key) if len(key) == 1 and not key.isalnum() else key]
    assert binding.description
    assert binding.id.startswith("logs.")


def test_no_key_is_bound_twice_or_one_that_terminals_take():
    assert len(BOUND) == sum(len(binding.key.split(",")) for binding in BINDINGS)
    assert {"ctrl+a", "ctrl+b", "ctrl+i", "ctrl+m", "ctrl+h", "ctrl+j"}.isdisjoint(BOUND)


def test_readme_lists_each_key():
    [row] = re.findall(r"^\| logs \|(.*)\|$", README.read_text(), re.MULTILINE)
    keys = {shown(key) for key, binding in BOUND.items() if not binding.action.startswith(("replica(", "scroll("))}
    moves = {"g", "home", "end", "ctrl+d", "ctrl+u", "pageup", "pagedown", "left", "right", "escape"}
    assert keys - moves - {*re.findall(r"`([^`]+)`", row)} == set()


async def test_keys_are_listed_hinted_and_clicked(app, monkeypatch):
    async with jobs_of(app) as table:
        await table.press("j", "j", "j")
        await table.open(LogsScreen, "l")
        logs = Logs(table.pilot)
        await logs.until(lambda: logs.status.line_count > 0, "lines")
        hints = logs.screen.query_one(KeyBar).hints
        assert len(hints) == 10
        assert {key for hint in hints for key in hint.key.split()} - {"?"} <= {shown(key) for key in BOUND}
        await logs.type("x")
        await logs.until(lambda: logs.pane.check_action("match", (1,)), "the search")
        wanted = {binding.description for binding in BOUND.values()}
        listed = {row.what for rows in bindings_of(app.screen).values() for row in rows}
        assert {re.sub(r"\d$", "by its number", words) for words in wanted} <= listed
        offered = {name for name, _, _ in DashboardCommands(app.screen)._key_commands()}
        # Streams that the backend cannot tell apart are not offered, nor what only moves.
        moves = ("stream", "start", "scroll", "page", "side", "replica")
        assert wanted - offered == {
            binding.description for binding in BOUND.values() if binding.action.startswith(moves)
        }
        await logs.press("escape")
        # A click on a hint does what its key does.
        await logs.until(lambda: logs.key_is_enabled("/"), "the hint")
        await logs.settled()
        bar = logs.screen.query_one(KeyBar)
        await logs.pilot.click(bar, offset=(1 + bar.render().plain.index("Search"), 0))
        await logs.until(lambda: isinstance(logs.focused(), Input), "the field")
        # A letter is text now, and so is the key that was clicked.
        await logs.until(lambda: [hint.key for hint in bar.hints] == ["F1"], "the keys of the field")
        await logs.press("escape")
        # The hints are as the keys are.
        await logs.until(lambda: logs.key_is_enabled("/"), "the hint")
        monkeypatch.setattr(logs.pane, "check_action", lambda *_: None)
        logs.pane.refresh_bindings()
        await logs.until(lambda: not logs.key_is_enabled("/"), "the hint to be dimmed")
