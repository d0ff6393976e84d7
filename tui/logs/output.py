"""What leaves the log pane: copies, saved files, and the plain view."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported
from textual.widget import Widget

from ...logs.text.sanitize import format_size, plain
from ..format import count
from ..ui.bars import key_of
from .export import ExportDone, ExportError, ExportTold, LogExport
from .reading import AnyLog, LogReading
from .save import save
from .search import LogSearch
from .text import BATCH, LineForm, whole_lines
from .view import LogView

if TYPE_CHECKING:
    from .save_dialog import SaveRequest

# Bytes that are copied at most.
MOST = 16_000_000


@dataclass(frozen=True)
class Copied:
    """Lines as one text."""

    text: str
    lines: int


def copy(log: AnyLog, numbers: range) -> Generator[float | None, None, Copied]:
    """Gather the safe text of lines, nothing before each; work for a `LogExport`.

    Args:
        log: the log, which stays open.
        numbers: the lines' numbers, without gaps.

    Raises:
        ExportError: it is more than can be copied.
    """
    form = LineForm()
    texts: list[str] = []
    size = 0
    for number, line in enumerate(whole_lines(log, numbers.start, numbers.stop), 1):
        texts.append(form.text(line))
        size += len(texts[-1]) + 1
        if size > MOST:
            lines = count(len(numbers), "line")
            raise ExportError(f"{lines} are more than {format_size(MOST)}: save them to a file instead")
        if number % BATCH == 0:
            yield number / len(numbers)
    return Copied("\n".join(texts), len(texts))


# How long leaving waits for a file that was being written to be removed (s).
_CLEAN_UP = 1.0


class LogOutput:
    """Selects, copies and saves lines of a pane's log.

    Args:
        pane: the pane.
        view: the lines on screen.
        reading: the log.
        search: knows the current line.
        say: shows a message, which may report a failure.
    """

    def __init__(
        self,
        pane: Widget,
        view: LogView,
        reading: LogReading,
        search: LogSearch,
        say: Callable[..., object],
    ) -> None:
        self._pane = pane
        self._say = say
        self._view = view
        self._reading = reading
        self._search = search
        self._saving: LogExport | None = None
        self._copying: LogExport | None = None

    @property
    def saving(self) -> bool:
        """Whether a file is being written."""
        return self._saving is not None

    def select(self) -> None:
        """Begin to select lines, at the current one or at the end of the screen; again: select none."""
        last, current = self._view.last_line, self._search.current
        if self._view.selection is not None:
            self._view.unselect()
        elif last is not None:
            self._view.select(last.number if current is None else current)

    def copy(self) -> None:
        """Copy the selected lines, else the current one, else those on screen; nothing is selected any more then."""
        view, current = self._view, self._search.current
        if view.selection is not None:
            numbers = view.selection.numbers(view.bounds)
        elif current is not None:
            numbers = range(current, current + 1)
        else:
            first, last = view.first_line, view.last_line
            numbers = range(first.number, last.number + 1) if first is not None and last is not None else range(0)
        if self._reading.log is not None and numbers:
            self.stop_copying()
            self._copying = LogExport(self._pane, copy(self._reading.log, numbers), "Copying")
            view.unselect()

    def stop_copying(self) -> None:
        """Copy nothing: the log is closed."""
        if self._copying is not None:
            self._copying.stop()
            self._copying = None

    def ask_to_save(self, job_name: str) -> None:
        """Ask where to save the log, and save it; the file is named after the job."""
        from .save_dialog import SaveDialog

        reading = self._reading
        which = "merged" if reading.replica is None else str(reading.numbers[0])
        name = f"{_file_name(job_name) or 'log'}-{which}.log"
        bounds = self._view.bounds
        words = [reading.words, count(bounds.end - bounds.first, "line")]
        words += [reading.stream] if reading.stream != "combined" else []
        words += [f"since {reading.since}"] if reading.since else []
        words += [self._search.rule_words] if reading.rules else []
        self._pane.app.push_screen(SaveDialog(name, "   ".join(words)), self._save)

    def _save(self, request: SaveRequest | None) -> None:
        reading = self._reading
        if request is None or reading.log is None:
            return
        if request.kind == "all":
            log, form = reading.everything(), LineForm(tuple(range(len(reading.logs))), "date")
        else:
            log, form = reading.anew(), self._form() if request.kind == "shown" else None
        self.stop_saving()
        self._saving = LogExport(self._pane, save(log, request.path, form, replace=request.replace), "Saving")
        self._pane.refresh_bindings()

    def stop_saving(self) -> None:
        """Save nothing: what was written is removed."""
        if self._saving is not None:
            self._saving.stop()
            self._saving = None
            self._say("Saving was stopped: the partial file was removed")

    def tell(self, message: ExportTold) -> None:
        """Say how far saving is."""
        if message.export is self._saving:
            share = "" if message.share is None else f" {int(message.share * 100)} %"
            self._say(f"Saving{share}   {key_of(self._pane, 'logs.leave')} stops it")

    def finish(self, message: ExportDone) -> Copied | None:
        """Show what was saved, or return what was copied."""
        if message.export not in (self._saving, self._copying):
            return None
        if message.export is self._saving:
            self._saving = None
            self._pane.refresh_bindings()
        if message.failure:
            self._say(message.failure, failed=True)
        elif isinstance(message.result, Copied):
            return message.result
        else:
            self._say(str(message.result))
        return None

    async def leave(self) -> None:
        """Stop everything, and give a file that was being written the time to be removed."""
        saving, self._saving = self._saving, None
        self.stop_copying()
        if saving is None:
            return
        saving.stop()
        await asyncio.to_thread(saving.join, _CLEAN_UP)

    def show_plain(self) -> None:
        """Leave the screen for a pager with the log as plain text."""
        from .pager import MOST_PRINTED, pager_command, plain_lines, show_plain

        try:
            command = pager_command()
        except ValueError as error:
            self._say(f"PAGER is not a command: {error}", failed=True)
            return
        failure = ""
        lines = plain_lines(self._reading.anew(), self._form(), *([] if command else [MOST_PRINTED]))
        try:
            with self._pane.app.suspend():
                failure = show_plain(lines, command)
        except SuspendNotSupported:
            failure = "this terminal cannot be suspended for a plain view"
        if failure:
            self._say(failure, failed=True)

    def _form(self) -> LineForm:
        """Return how lines are shown."""
        times = self._view.times
        return LineForm(self._reading.numbers, times, self._reading.start_time() if times == "relative" else None)


def _file_name(name: str) -> str:
    """Return a job's name as part of a file's name."""
    return "".join(char if char.isalnum() or char in "-_.+=" else "_" for char in plain(name)).lstrip(".")
