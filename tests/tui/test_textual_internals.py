"""No private name of Textual is used outside the file that is kept for them, and each name in it is still there."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from functools import lru_cache
from pathlib import Path

import textual
from rich.text import Text
from textual.app import App
from textual.command import CommandPalette, Provider
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Input

import torchx_tui.tui
from torchx_tui.tui.terminal.textual_internals import (
    DrawnInput,
    EndedParents,
    HiddenScreens,
    terminal_output,
    write_to_terminal,
)

_ROOT = Path(torchx_tui.tui.__file__).parent
_INTERNALS = "terminal/textual_internals.py"


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@lru_cache(None)
def _private_names_of(base: type) -> frozenset[str]:
    """The private methods and attributes of a class of Textual."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
    stored = {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    return frozenset(name for name in {*vars(base), *stored} if _is_private(name))


def _textual_bases(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if base.__module__.split(".")[0] == "textual"]


def test_no_screen_uses_private_names_of_textual():
    found = []
    for path in sorted(_ROOT.rglob("*.py")):
        relative = path.relative_to(_ROOT)
        module = importlib.import_module(".".join(["torchx_tui.tui", *relative.with_suffix("").parts]))
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ClassDef) or relative.as_posix() == _INTERNALS:
                continue
            if (cls := getattr(module, node.name, None)) is None:
                continue
            names = {name for base in _textual_bases(cls) for name in _private_names_of(base)}
            used = {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}
            used |= {inner.name for inner in node.body if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef))}
            found += [f"{relative}: {cls.__name__}.{name}" for name in sorted(used & names)]
    assert found == []


def test_no_private_module_of_textual_is_imported_elsewhere():
    for path in _ROOT.rglob("*.py"):
        if path.relative_to(_ROOT).as_posix() != _INTERNALS:
            for node in ast.walk(ast.parse(path.read_text())):
                modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert not any("._" in module for module in modules if module.startswith("textual")), path


def test_textual_has_the_names_that_are_used():
    for owner, names in {
        App: ["_background_screens", "_driver", "_screen_stack", "_start_widget"],
        Widget: ["_attach", "_closed", "_closing"],
        Screen: ["_on_timer_update"],
        Input: ["_value"],
        Provider: ["_search"],
        CommandPalette: ["_cancel_gather_commands", "_gather_commands", "_GATHER_COMMANDS_GROUP"],
    }.items():
        known = {name for base in _textual_bases(owner) for name in _private_names_of(base)}
        assert set(names) <= known, f"{owner.__name__} of Textual {textual.__version__}"
    assert hasattr(CommandPalette._gather_commands, "__wrapped__")


async def test_an_input_draws_another_text_than_it_holds():
    class Masked(DrawnInput):
        def shown_text(self):
            return None if self.has_focus else Text("masked")

    class InputApp(App[None]):
        def compose(self):
            yield Input()
            yield Masked("secret")

    app = InputApp()
    async with app.run_test(size=(40, 8)) as pilot:
        await pilot.pause()
        masked = app.query_one(Masked)
        assert any("masked" in masked.render_line(y).text for y in range(3))
        masked.focus()
        await pilot.pause()
        assert any("secret" in masked.render_line(y).text for y in range(3))


async def test_an_app_without_a_terminal_says_so():
    app: App[None] = App()
    assert write_to_terminal(app, "\x1b]2;x\x07") is False
    assert terminal_output(app) is None


async def test_a_widget_that_is_gone_starts_no_scrollbar():
    class ScrollApp(EndedParents, App[None]):
        def compose(self):
            yield VerticalScroll(id="kept")
            yield VerticalScroll(id="gone")

    app = ScrollApp()
    async with app.run_test() as pilot:
        gone = app.query_one("#gone")
        await gone.remove()
        await pilot.pause()
        bars = [app.query_one("#kept").vertical_scrollbar, gone.vertical_scrollbar]
        await pilot.pause()
        assert [bar.is_running for bar in bars] == [True, False]


async def test_a_screen_that_is_hidden_is_not_drawn():
    class HidingApp(HiddenScreens, App[None]):
        pass

    app = HidingApp()
    async with app.run_test() as pilot:
        below = app.screen
        app.push_screen(Screen())
        await pilot.pause()
        assert not below.is_current
        hiding = app.screen
        # What is below a dialog can be seen, but not below that.
        app.push_screen(ModalScreen())
        await pilot.pause()
        assert hiding.is_current
        assert not below.is_current
