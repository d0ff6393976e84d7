"""The command palette: what the keys of the screen do, jobs, components and themes by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from textual import events, on
from textual.app import ComposeResult
from textual.command import CommandInput, CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider, SearchIcon
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input

from ..logs.text.sanitize import plain
from .format import state_word
from .job.bulk import job_names
from .launch.component_list import component_folders, growing_list
from .terminal.textual_internals import SearchedPalette
from .ui.bars import key_words
from .ui.frames import PacedScreen
from .ui.fuzzy import fuzzy_match
from .ui.options import ChangingOptions
from .ui.palette import PALETTES

if TYPE_CHECKING:
    from ..components.model import ComponentSummary
    from .dashboard import Dashboard

# So many jobs, and components, are offered before anything is typed.
_MOST_DISCOVERED = 8
COMPONENTS_WAIT = 0.2
"""Seconds that the first list waits for the components."""
# What is done with the job at the cursor, the most used first, by the names of the keys.
_ON_JOBS = (
    "table.open",
    "jobs.logs",
    "jobs.relaunch",
    "jobs.edit",
    "jobs.cancel",
    "jobs.copy_handle",
    "jobs.copy_command",
    "jobs.delete",
    "table.mark",
)
# Actions that only move a cursor or a view.
_MOVEMENT = frozenset(
    {"move", "edge", "page", "scroll", "side", "start", "row", "turn", "pick", "replica"}
    | {"next_field", "focus_next", "focus_previous"}
)

Command = tuple[str, str, Callable[[], object]]


class Commands(ChangingOptions, CommandList):
    """The list of the palette."""


class CommandsScreen(PacedScreen, SearchedPalette):
    """The command palette."""

    def compose(self) -> ComposeResult:
        """Yield Textual's parts, with a list that may change at any time."""
        with Vertical(id="--container"):
            with Horizontal(id="--input"):
                yield SearchIcon()
                yield CommandInput(placeholder=self.placeholder, select_on_focus=False)
            with Vertical(id="--results"):
                yield Commands()

    def on_mount(self) -> None:
        """Take what is typed at once: the next key may be here already."""
        # Textual shows nothing, and nothing that is not shown takes the focus, until the first commands are found.
        self.query_one("#--container").styles.display = "block"
        self.set_focus(self.query_one(Input))

    def on_click(self, event: events.Click) -> None:
        """Ignore a click that is beyond the screen, which has become smaller since."""
        if event.screen_offset not in self.size.region:
            # Textual looks for the widget there, to close the palette if there is none of its own.
            event.prevent_default()

    @on(Input.Submitted)
    async def _run_best(self, event: Input.Submitted) -> None:
        """Run what was typed, where enter came before the list of what matches."""
        if (typed := event.value.strip()) == self.listed_for:
            return
        event.stop()
        # The list, whose highlighted command Textual would run, is that of what was typed before.
        event.prevent_default()
        found = [hit async for hit in self.search_all(typed)] if typed else []
        if found:
            self.end_search()
            self.app.post_message(CommandPalette.Closed(option_selected=True))
            self.dismiss()
            self.app.call_later(max(found, key=lambda hit: hit.score).command)


class DashboardCommands(Provider):
    """Everything that can be done, by name: first with the job at the cursor, then by the screen's other keys."""

    async def startup(self) -> None:
        """Begin to list the components; what is not read soon is offered once it is there, or with the next letter."""
        self._components: dict[str, ComponentSummary] = {}
        self._has_components = asyncio.Event()
        self._is_late = False
        self.screen.run_worker(self._list_components(), group="components", exclusive=True)

    async def _list_components(self) -> None:
        dashboard = self._dashboard
        folders = component_folders(dashboard.settings.launch.component_folders)
        lists = growing_list(folders, dashboard.ui_state.state.pinned, {})
        while (listed := await asyncio.to_thread(next, lists, None)) is not None:
            self._components = listed
            self._take_components()

    def _take_components(self) -> None:
        self._has_components.set()
        # An app that ends has no screen any more.
        palette = self.app.screen if self._is_late and self.app.screen_stack else None
        if isinstance(palette, SearchedPalette):
            palette.search_again()
        self._is_late = False

    async def _wait_for_components(self) -> None:
        # Not in `startup`, which Textual cancels for good with a search that the next letter ends.
        try:
            await asyncio.wait_for(self._has_components.wait(), COMPONENTS_WAIT)
        except asyncio.TimeoutError:
            self._is_late = True

    async def discover(self) -> Hits:
        """Offer what fits where nothing is typed yet."""
        await self._wait_for_components()
        for name, help_text, run in self._discovered():
            yield DiscoveryHit(Content(name), run, text=name, help=_literal(help_text))

    async def search(self, query: str) -> Hits:
        """Offer what matches."""
        await self._wait_for_components()
        for name, help_text, run in self._commands():
            score, places = fuzzy_match(query, name)
            if score > 0:
                shown = Content(name)
                for place in places:
                    shown = shown.stylize(self.match_style or "", place, place + 1)
                yield Hit(score, shown, run, text=name, help=_literal(help_text))

    @property
    def _dashboard(self) -> Dashboard:
        return cast("Dashboard", self.app)

    def _commands(self) -> Iterator[Command]:
        yield from self._key_commands()
        for what, progress in self._dashboard.launches.under_way:
            yield (
                f"Show the launch of {plain(what)}",
                "show its progress, or stop it",
                partial(self._dashboard.launches.open, progress),
            )
        yield (
            "Doctor: check this installation",
            "config, terminal, folders, backends",
            partial(self.app.run_action, "app.doctor"),
        )
        yield from self._job_commands()
        yield from self._component_commands()
        for theme in PALETTES:
            if theme != "torchx-no-color":
                yield f"Theme {theme}", "colours of the dashboard", partial(setattr, self.app, "theme", theme)

    def _discovered(self) -> Iterator[Command]:
        yield from self._key_commands()
        yield from islice(self._job_commands(), _MOST_DISCOVERED)
        yield from islice(self._component_commands(), _MOST_DISCOVERED)

    def _key_commands(self) -> Iterator[Command]:
        """Give what keys do on this screen but move: first with the job at the cursor, or the marked ones."""
        keys: dict[str, Command] = {}
        for active in self.screen.active_bindings.values():
            binding = active.binding
            name = binding.id
            if name is None or name in keys or not binding.description or not active.enabled:
                continue
            if binding.action.partition("(")[0].rpartition(".")[2] in _MOVEMENT:
                continue
            run = partial(self.app.run_action, binding.action, active.node)
            keys[name] = (binding.description, f"key {key_words(binding.key)}", run)
        jobs = self._target_words()
        for name in _ON_JOBS:
            if name in keys:
                description, help_text, run = keys.pop(name)
                yield description, f"{help_text}   {jobs}" if jobs else help_text, run
        yield from keys.values()

    def _target_words(self) -> str:
        targets = getattr(self.screen, "target_rows", list)()
        return job_names(targets) if targets else ""

    def _job_commands(self) -> Iterator[Command]:
        from .job.screen import JobScreen

        rows = sorted(self._dashboard.jobs.rows.values(), key=lambda row: row.submitted_at or 0.0, reverse=True)
        for row in rows:
            yield f"Open {row.name}", state_word(row.state), partial(self._push, JobScreen, row)

    def _component_commands(self) -> Iterator[Command]:
        from .launch.screen import LaunchScreen

        if self._dashboard.runner.read_only:
            return
        for component in self._components.values():
            if not component.error:
                summary = plain(component.summary) or "component"
                yield (
                    f"Launch {plain(component.name)}",
                    summary,
                    partial(self._push, LaunchScreen, None, None, component),
                )

    def _push(self, screen: Callable[..., Screen[Any]], *arguments: object) -> None:
        self.app.push_screen(screen(*arguments))


def _literal(text: str) -> str:
    """Return a text that Textual does not read as markup: it takes a `Content` as it is."""
    return cast("str", Content(text))
