"""Textual's driver, with an output that never blocks the event loop, and an input that nothing ends."""

from __future__ import annotations

import os
import select
import sys
import threading
from contextlib import suppress
from typing import Any

from textual.app import App
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message
from textual.messages import TerminalSupportsSynchronizedOutput

from .input import TerminalInput
from .output import TerminalOutput

# Bytes of one read.
_READ = 1 << 14
# How often is looked whether a lone escape was the key, and whether the program ends (s).
_TICK_SECONDS = 0.1
# How often is looked whether the terminal is still there (s).
_LOOK_SECONDS = 1.0


class TerminalGone(Message):
    """The terminal hung up."""


class TerminalDriver(LinuxDriver):
    """Writes through a `TerminalOutput` in place of Textual's own thread, which stays idle."""

    output: TerminalOutput | None = None

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)
        self._terminal_app = app

    def start_application_mode(self) -> None:
        """Take the terminal over; also when the program comes back to it."""
        terminal = sys.__stderr__
        assert terminal is not None
        self.output = TerminalOutput(terminal.fileno(), terminal.encoding)
        super().start_application_mode()
        self._left = threading.Event()
        threading.Thread(target=self._watch_terminal, args=(self._left,), name="watch-terminal", daemon=True).start()

    def run_input_thread(self) -> None:
        """Read what the terminal sends, until it goes away or the program ends."""
        terminal_input = TerminalInput()
        poller = select.poll()
        poller.register(self.fileno, select.POLLIN)
        # A terminal that hung up cannot be read; the other thread says so.
        with suppress(OSError):
            while not self.exit_event.is_set():
                if poller.poll(_TICK_SECONDS * 1000):
                    data = os.read(self.fileno, _READ)
                    if not data:
                        return
                    for message in terminal_input.feed(data):
                        self.process_message(message)
                for message in terminal_input.tick():
                    self.process_message(message)

    def _watch_terminal(self, left: threading.Event) -> None:
        """Tell the app when the terminal has gone: under nohup no signal does, and reading it would spin."""
        poller = select.poll()
        # Without any wanted event a hang-up is still reported.
        poller.register(self.fileno, 0)
        while not left.wait(_LOOK_SECONDS):
            if poller.poll(0):
                self._terminal_app.post_message(TerminalGone())
                return

    def write(self, data: str) -> None:
        """Write to the terminal, sooner or later."""
        assert self.output is not None
        self.output.write(data)

    def flush(self) -> None:
        """Take note of the end of a frame."""
        if self.output is not None:
            self.output.end_frame()

    def process_message(self, message: Message) -> None:
        """Take note of what comes from the terminal; called in the thread that reads it."""
        if self.output is None:
            pass
        elif not isinstance(message, TerminalSupportsSynchronizedOutput):
            self.output.note_input()
        elif not self.output.answered():
            # The app needs to know only once.
            return
        super().process_message(message)

    def stop_application_mode(self) -> None:
        """Leave the terminal as it was, without waiting for frames that are still queued."""
        self._left.set()
        if self.output is not None:
            self.output.drop_unsent()
        super().stop_application_mode()

    def close(self) -> None:
        """End the threads."""
        super().close()
        if self.output is not None:
            self.output.close()


def paced(driver_class: type[Driver]) -> type[Driver]:
    """Return the driver to use in place of Textual's choice."""
    return TerminalDriver if driver_class is LinuxDriver else driver_class
