"""What the command palette offers: the keys of the screen by name, jobs, components, themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual import work
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from .governor import PacedScreen
from .leaving import LeavesOnce
from .palette import PALETTES
from .screens.keys import key_words
from .words import state_word

if TYPE_CHECKING:
    from .app import TorchXTuiApp

# What is offered before anything is typed.
MOST_DISCOVERED = 30

Command = tuple[str, str, Callable[[], object]]


class CommandsScreen(PacedScreen, LeavesOnce, CommandPalette):
    """The command palette."""

    # A search that goes on while the palette is taken away finds its list gone: that ends the search, not the program.
    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP, exit_on_error=False)
    async def _gather_commands(self, search_value: str) -> None:
        await CommandPalette._gather_commands.__wrapped__(self, search_value)  # type: ignore[attr-defined]


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
