"""What the command palette offers: the keys of the screen by name, jobs, components, themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual import on, work
from textual.app import ComposeResult
from textual.command import CommandInput, CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider, SearchIcon
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, LoadingIndicator
from textual.worker import get_current_worker

from .governor import PacedScreen
from .leaving import LeavesOnce
from .palette import PALETTES
from .screens.keys import key_words
from .widgets.options import ChangingOptions
from .words import state_word

if TYPE_CHECKING:
    from .app import TorchXTuiApp

# What is offered before anything is typed.
MOST_DISCOVERED = 30

Command = tuple[str, str, Callable[[], object]]


class Commands(ChangingOptions, CommandList):
    """The list of the palette."""


class CommandsScreen(PacedScreen, LeavesOnce, CommandPalette):
    """The command palette."""

    def compose(self) -> ComposeResult:
        """Yield Textual's parts, with a list that may change at any time."""
        with Vertical(id="--container"):
            with Horizontal(id="--input"):
                yield SearchIcon()
                yield CommandInput(placeholder=self._placeholder, select_on_focus=False)
            with Vertical(id="--results"):
                yield Commands()
                yield LoadingIndicator()

    # What was typed when the commands in the list were searched for.
    _listed_for: str | None = None

    def on_mount(self) -> None:
        """Take what is typed at once: the next key may be here already."""
        # Textual shows nothing, and nothing that is not shown takes the focus, until the first commands are found.
        self.query_one("#--container").styles.display = "block"
        self.set_focus(self.query_one(Input))

    # A search that goes on while the palette is taken away finds its list gone: that ends the search, not the program.
    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP, exit_on_error=False)
    async def _gather_commands(self, search_value: str) -> None:
        self._listed_for = None
        await CommandPalette._gather_commands.__wrapped__(self, search_value)  # type: ignore[attr-defined]
        if not get_current_worker().is_cancelled:
            self._listed_for = search_value

    @on(Input.Submitted)
    async def _run_best(self, event: Input.Submitted) -> None:
        """Run what was typed, where enter came before the list of what matches."""
        if (typed := event.value.strip()) == self._listed_for:
            return
        event.stop()
        # The list, whose highlighted command Textual would run, is that of what was typed before.
        event.prevent_default()
        found = [hit for provider in self._providers async for hit in provider._search(typed)] if typed else []
        if found:
            self._cancel_gather_commands()
            self.app.post_message(CommandPalette.Closed(option_selected=True))
            self.dismiss()
            self.app.call_later(max(found, key=lambda hit: hit.score).command)


class DashboardCommands(Provider):
    """Everything that can be done, by name."""

    async def discover(self) -> Hits:
        """Offer the keys of the screen."""
        for number, (name, help_text, run) in enumerate(self._key_commands()):
            if number < MOST_DISCOVERED:
                yield DiscoveryHit(Content(name), run, text=name, help=help_text)

    async def search(self, query: str) -> Hits:
        """Offer what matches."""
        matcher = self.matcher(query)
        for name, help_text, run in self._commands():
            score = matcher.match(name)
            if score > 0:
                yield Hit(score, matcher.highlight(name), run, text=name, help=help_text)

    @property
    def _dashboard(self) -> TorchXTuiApp:
        return cast("TorchXTuiApp", self.app)

    def _commands(self) -> Iterator[Command]:
        yield from self._key_commands()
        yield "Doctor: what is wrong here", "config, terminal, folders, backends", self._dashboard.action_doctor
        yield from self._job_commands()
        for theme in PALETTES:
            if theme != "torchx-no-color":
                yield f"Theme {theme}", "colours of the dashboard", partial(setattr, self.app, "theme", theme)

    def _key_commands(self) -> Iterator[Command]:
        seen: set[str] = set()
        for active in self.screen.active_bindings.values():
            binding = active.binding
            if binding.id is None or binding.id in seen or not binding.description or not active.enabled:
                continue
            seen.add(binding.id)
            run = partial(self.app.run_action, binding.action, active.node)
            yield binding.description, f"key {key_words(binding.key)}", run

    def _job_commands(self) -> Iterator[Command]:
        from .screens.job import JobScreen

        for row in list(self._dashboard.jobs.rows.values()):
            yield (
                f"Open {row.name}",
                state_word(row.state),
                lambda row=row: self.app.push_screen(JobScreen(row)),
            )
