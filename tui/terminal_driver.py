"""Textual's driver, with an output that never blocks the event loop."""

from __future__ import annotations

import sys

from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message
from textual.messages import TerminalSupportsSynchronizedOutput

from .terminal_output import TerminalOutput


class TerminalDriver(LinuxDriver):
    """Writes through a `TerminalOutput` in place of Textual's own thread, which stays idle."""

    output: TerminalOutput | None = None

    def start_application_mode(self) -> None:
        """Take the terminal over; also when the program comes back to it."""
        terminal = sys.__stderr__
        assert terminal is not None
        self.output = TerminalOutput(terminal.fileno(), terminal.encoding)
        super().start_application_mode()

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
            self.output.heard()
        elif not self.output.answered():
            # The app needs to know only once.
            return
        super().process_message(message)

    def stop_application_mode(self) -> None:
        """Leave the terminal as it was, without waiting for frames that are still queued."""
        if self.output is not None:
            self.output.end()
        super().stop_application_mode()

    def close(self) -> None:
        """End the threads."""
        super().close()
        if self.output is not None:
            self.output.close()


def paced(driver_class: type[Driver]) -> type[Driver]:
    """Return the driver to use in place of Textual's choice."""
    return TerminalDriver if driver_class is LinuxDriver else driver_class
