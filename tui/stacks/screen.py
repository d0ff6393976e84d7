"""The Stacks screen: the groups of a job's ranks, outliers first, and the stack of the selected one."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from ...base.errors import describe_error
from ...diagnosis.frames import main_frames
from ...diagnosis.ranks import name_ranks
from ...diagnosis.stacks.conclusion import Conclusion
from ...diagnosis.stacks.groups import RankGroup, group_ranks, rank_states
from ...diagnosis.stacks.kept import kept_snapshots
from ...diagnosis.stacks.snapshot import Pace, ProcessStack, StackSnapshot
from ...diagnosis.stacks.take import PAUSE_S, take_stacks
from ...diagnosis.stacks.text import describe_activity, describe_reading, describe_unread
from ...logs.text.sanitize import plain
from ..format import clock, count
from ..messages import StacksTaken
from ..ui.bars import Hint
from ..ui.base import BaseScreen
from ..ui.job_cells import name_text, state_text
from ..ui.new_file import write_new_file
from ..ui.options import Options
from ..ui.palette import Text
from ..ui.pane import Divider, Pane
from ..ui.text_pane import TextPane
from ..ui.title_rule import TitleRule
from . import cells

if TYPE_CHECKING:
    from ..rows import JobRow
    from ..watch.signals import RowsChanged

_WIDE = 120
Kept: TypeAlias = tuple[float, int, Pace]
"""The time of a snapshot, the number of its groups, and its pace."""


class GroupList(Options):
    """The groups; the one at the cursor is shown beside it."""

    HELP_TITLE = "Groups"
    BINDINGS = [
        Binding("j,down", "cursor_down", "Next group", id="stacks.down"),
        Binding("k,up", "cursor_up", "Previous group", id="stacks.up"),
    ]


class StacksScreen(BaseScreen):
    """The stacks of all ranks of one job.

    Args:
        row: the job.
    """

    HELP_TITLE = "Stacks"
    CSS_PATH = "../styles/stacks.tcss"
    BINDINGS = [
        Binding("R", "take", "Read again", id="stacks.take"),
        Binding("t", "threads", "All threads, or the main one", id="stacks.threads"),
        Binding("v", "library", "Show or hide frames of libraries", id="stacks.library"),
        Binding("N", "native", "Read with frames of C and C++", id="stacks.native"),
        Binding("greater_than_sign", "rank(1)", "Next rank", id="stacks.next_rank"),
        Binding("less_than_sign", "rank(-1)", "Previous rank", id="stacks.previous_rank"),
        Binding("l", "logs", "Log of the rank", id="stacks.logs"),
        Binding("y", "copy_stacks", "Copy", id="stacks.copy"),
        Binding("S", "save", "Save to a file", id="stacks.save"),
        Binding("escape", "back", "Back", id="stacks.back"),
    ]

    def __init__(self, row: JobRow) -> None:
        super().__init__()
        self.row = row
        self.snapshot: StackSnapshot | None = None
        self.found: Conclusion | None = None
        self.kept: list[Kept] = []
        self.is_done = False
        """Whether no snapshot is being taken."""
        self._error = ""
        self._rank: int | None = None
        self._all_threads, self._with_library = False, True
        self._title = TitleRule(id="stacks-title")
        self._finding = Static(id="stacks-finding", markup=False)
        self._list = GroupList(id="stacks-list", markup=False)
        self._groups = Pane("Groups", self._list, id="stacks-groups")
        self._children = TextPane("Below", id="stacks-children")
        self._snapshots = TextPane("Snapshots", id="stacks-takes")
        self._frames = TextPane("Frames", id="stacks-frames")
        self._how = Static(id="stacks-how", markup=False)
        self._unread = Static(id="stacks-unread", markup=False)

    def compose_body(self) -> ComposeResult:
        """Yield the panes."""
        yield self._title
        yield self._finding
        with Horizontal(id="stacks-body"):
            with Vertical(id="stacks-left"):
                yield self._groups
                yield self._children
                yield self._snapshots
            yield Divider(id="stacks-divider")
            yield self._frames
        yield self._how
        yield self._unread

    def on_mount(self) -> None:
        """Take a snapshot."""
        self.listen(self.dashboard.signals.rows, self._show_row)
        self.set_focus(self._list)
        self._draw()
        self.action_take()

    def on_resize(self, event: events.Resize) -> None:
        """Draw the texts for the new width, once the panes have it."""
        self.call_after_refresh(self._fill)

    def _show_row(self, _news: RowsChanged) -> None:
        """Show the job's state as it is now."""
        self.row = self.dashboard.jobs.rows.get(self.row.handle, self.row)
        self._draw_head()

    # Taking

    def action_take(self) -> None:
        """Take a snapshot, and another one after two seconds."""
        self._begin(native=False)

    def action_native(self) -> None:
        """Take a snapshot with frames of C and C++, which stops each rank for seconds."""
        self.dashboard.status.say("Reading frames of C and C++: each rank is stopped for some seconds")
        self._begin(native=True)

    def _begin(self, *, native: bool) -> None:
        self.is_done, self._error = False, ""
        self._draw_head()
        self._take(native)

    @work(group="stacks", exclusive=True)
    async def _take(self, native: bool) -> None:
        handle = self.row.handle
        read = partial(asyncio.to_thread, take_stacks, self.dashboard.runner, handle)
        try:
            kept = await asyncio.to_thread(_summaries, handle)
            first, found = await read(native=native)
            self._show(first, found, kept, is_last=native or not first.ranks)
            if not self.is_done:
                await asyncio.sleep(PAUSE_S)
                second, found = await read(earlier=first)
                self._show(second, found, kept, is_last=True)
        except Exception as error:
            self.is_done, self._error = True, plain(describe_error(error))
            self._fill()

    def _show(self, snapshot: StackSnapshot, found: Conclusion, kept: list[Kept], *, is_last: bool) -> None:
        self.snapshot, self.found, self.kept, self.is_done = snapshot, found, kept, is_last
        self._fill()
        if snapshot.ways:
            reading = describe_reading(snapshot)
            self.dashboard.post_message(StacksTaken(self.row.handle, snapshot.at, reading, found))

    # What is shown

    @property
    def group(self) -> RankGroup | None:
        """The group at the cursor."""
        at = self._list.highlighted
        groups = self.found.groups if self.found else ()
        return groups[at] if at is not None and at < len(groups) else None

    @property
    def stack(self) -> ProcessStack | None:
        """The process that is shown."""
        group = self.group
        if self.snapshot is None or group is None:
            return None
        rank = self._rank if self._rank in group.ranks else group.ranks[0]
        return self.snapshot.ranks.get(rank)

    def _fill(self) -> None:
        """Fill the list, the cursor where it was."""
        listed, found = self._list, self.found
        before = listed.highlighted
        listed.clear_options()
        if found is not None:
            width = max(20, self._groups.size.width - 3)
            blocking = set(found.blocking)
            listed.add_options(
                [
                    cells.group_text(group, bool(blocking & set(group.ranks)), width, self.glyphs)
                    for group in found.groups
                ]
            )
            if found.groups:
                listed.highlighted = min(before or 0, len(found.groups) - 1)
        self._draw()

    def on_option_list_option_highlighted(self) -> None:
        """Show the group's stack."""
        self._draw_frames()

    def _draw(self) -> None:
        self._draw_head()
        self._draw_frames()

    def _draw_head(self) -> None:
        if not self.is_mounted:
            return
        self._title.title = name_text(self.row.name, max(10, self.app.size.width - 30), self.glyphs, bold=True)
        self._title.right = state_text(self.row.state, self.glyphs)
        snapshot, found = self.snapshot, self.found
        if self._error:
            self._finding.update(Text(self._error, "$style-failed"))
        elif found is not None:
            self._finding.update(cells.finding_text(found))
        else:
            self._finding.update(Text("Reading the stacks of all ranks", "$style-muted"))
        if snapshot is not None and found is not None:
            self._groups.rule.info = Text(count(len(found.groups), "group"))
            waits = "" if self.is_done else "   reading again"
            how = cells.how_text(snapshot, clock(snapshot.at, self.clock()))
            self._how.update(how.append(waits, "$style-pending"))
            unread = cells.unread_text(snapshot)
            self._unread.update(unread)
            self._unread.display = bool(unread)
        self._draw_snapshots()
        self.refresh_bars()

    def _draw_snapshots(self) -> None:
        snapshot, found = self.snapshot, self.found
        if snapshot is None or found is None:
            return
        text = Text()
        shown = (snapshot.at, len(found.groups), "")
        for number, (at, groups, pace) in enumerate([shown, *self.kept][:6]):
            text.append("\n" if text else "").append(f" {clock(at, self.clock())}   ", "$style-text")
            text.append(count(groups, "group"), "$style-muted")
            text.append(f"   {pace}" if pace else "", "$style-muted")
            text.append("   shown" if number == 0 else "", "$style-accent")
        if found.pace:
            text.append(f"\n {found.pace_sentence}", "bold $style-text")
        self._snapshots.rule.info = Text(str(1 + len(self.kept)))
        self._snapshots.show_text(text)

    def _draw_frames(self) -> None:
        snapshot, found, group, stack = self.snapshot, self.found, self.group, self.stack
        if not self.is_mounted or snapshot is None or found is None or group is None:
            return
        width = max(30, self._frames.size.width - 3)
        frames = main_frames(stack.threads) if stack else group.frames
        rank = stack.rank if stack else group.ranks[0]
        where = f"rank {rank}" + (f", {stack.host}, pid {stack.pid}" if stack else "")
        self._frames.rule.info = Text(plain(where))
        alike = cells.alike_below(found.groups)
        text = Text()
        if frames:
            text.append_text(
                cells.frames_text(
                    frames, alike, len(snapshot.ranks), self.glyphs, with_library=self._with_library, width=width
                )
            )
        else:
            why = next(
                (why for who, why in describe_unread(snapshot) if who == f"rank {rank}"), describe_activity(group)
            )
            text.append(plain(why), "$style-muted")
        if stack is not None and self._all_threads:
            text.append_text(cells.threads_text(stack, self.glyphs, width))
        elif stack is not None and self.app.size.width >= _WIDE:
            for part in (cells.source_text(snapshot, frames, stack.host, self.glyphs, width), self._compared(width)):
                text.append("\n\n" if part else "").append_text(part)
        self._frames.show_text(text)
        children = [each for each in snapshot.processes if not each.is_main and each.rank == rank]
        self._children.display = bool(children)
        self._children.rule.info = Text(f"rank {rank}  {len(children)}")
        self._children.show_text(cells.children_text(children, max(20, self._children.size.width - 3), self.glyphs))

    def _compared(self, width: int) -> Text:
        others = [
            group for group in (self.found.groups if self.found else ()) if group is not self.group and group.frames
        ]
        largest = max(others, key=lambda group: len(group.ranks), default=None)
        return cells.compared_text(largest, self.glyphs, width) if largest else Text()

    # Keys

    def action_threads(self) -> None:
        """Show all threads of the rank, or the main one."""
        self._all_threads = not self._all_threads
        self._draw_frames()

    def action_library(self) -> None:
        """Show or hide the frames of libraries."""
        self._with_library = not self._with_library
        self._draw_frames()

    def action_rank(self, step: int) -> None:
        """Show the next or the previous rank of the group."""
        group, stack = self.group, self.stack
        if group is not None:
            at = group.ranks.index(stack.rank) if stack is not None and stack.rank in group.ranks else 0
            self._rank = group.ranks[(at + step) % len(group.ranks)]
            self._draw_frames()

    def action_logs(self) -> None:
        """Show the log of the rank."""
        from ..logs.screen import LogsScreen

        self.app.push_screen(LogsScreen(self.row, self._replica))

    @property
    def _replica(self) -> tuple[str, int] | None:
        """Role and number of the replica of the rank that is shown; None if unknown."""
        snapshot, group, stack = self.snapshot, self.group, self.stack
        if snapshot is None or group is None:
            return None
        found = stack or snapshot.exited.get(group.ranks[0])
        return (snapshot.role, found.replica) if found else None

    def action_copy_stacks(self) -> None:
        """Copy the finding and the stack that is shown."""
        self.dashboard.terminal_clipboard.copy(self._report(), "the stacks")

    def action_save(self) -> None:
        """Save the finding and the stacks of all groups to a file in the current folder."""
        self._save(self._report())

    @work(group="save", exclusive=True)
    async def _save(self, report: str) -> None:
        status = self.dashboard.status
        try:
            path = await asyncio.to_thread(write_new_file, f"{self.row.name}-stacks", "txt", report)
            status.say(f"Saved {path.absolute()}")
        except OSError as error:
            status.say(f"Not saved: {error.strerror}: {error.filename}", failed=True)

    def _report(self) -> str:
        if self.found is None:
            return self._error
        lines = [self.found.sentence, *(f"  {detail}" for detail in self.found.details)]
        for group in self.found.groups:
            lines.append(f"\n{name_ranks(group.ranks)}:")
            lines += [f'  File "{frame.file}", line {frame.line}, in {frame.function}' for frame in group.frames]
        return "\n".join(plain(line) if line.strip() else line for line in "\n".join(lines).split("\n"))

    def path(self) -> list[str]:
        """Return the way to this screen."""
        return ["Jobs", self.row.name, "Stacks"]

    def counts(self) -> Text:
        """Return the handle."""
        return Text(plain(self.row.handle), "$style-faint")

    def hints(self) -> list[Hint]:
        """Return the keys."""
        return [
            Hint("stacks.take", "Read again"),
            Hint("stacks.threads", "All threads"),
            Hint("stacks.library", "Library"),
            Hint("stacks.previous_rank stacks.next_rank", "Rank"),
            Hint("stacks.native", "Native"),
            Hint("stacks.logs", "Logs"),
            Hint("stacks.copy", "Copy"),
            Hint("stacks.save", "Save"),
            Hint("stacks.back", "Back"),
        ]

    def action_back(self) -> None:
        """Go back."""
        self.dismiss()


def _summaries(handle: str) -> list[Kept]:
    snapshots = kept_snapshots(handle, has_recorders=False)
    return [(snapshot.at, len(group_ranks(rank_states(snapshot))), snapshot.pace) for snapshot in snapshots]
