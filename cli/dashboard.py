"""Open the dashboard, and end the process after it."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NoReturn

from .output import say

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..settings.config import Settings

# Values of TERM for terminals without a cursor that can be moved, such as a shell in Emacs.
_CANNOT_DRAW = ("dumb", "unknown")
# Time limit for closing backends at the end (s).
_CLOSE_TIMEOUT_S = 1.0


def open_dashboard(
    settings: Settings,
    problem: str = "",
    *,
    launch: Callable[[Runner], str] | None = None,
    config_file: str | None = None,
) -> int:
    """Open the dashboard and end the process with its exit code; return 2 if there is no terminal for it.

    Args:
        settings: the settings of the file and the command line.
        problem: the faults of the file, for the status line.
        launch: launches a job and returns its handle; the dashboard opens on that job.
        config_file: the config file of the command line, if any.

    Raises:
        TorchXTuiError: the job could not be launched.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        say("the dashboard needs a terminal; `torchx-tui list` works without one")
        return 2
    if (terminal := os.environ.get("TERM")) in _CANNOT_DRAW:
        say(
            f"a terminal with TERM={terminal} cannot draw the dashboard; set TERM to what yours is, such as "
            "TERM=xterm-256color, or use `torchx-tui list`"
        )
        return 2
    _give_terminal_a_size()
    # Textual reads these variables when it is imported.
    if frames := settings.frames_per_second or usual_frames(os.environ):
        os.environ["TEXTUAL_FPS"] = str(frames)
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")

    import asyncio

    from ..base.timeouts import AwaitedCall
    from ..settings.make_runner import make_runner

    runner = make_runner(settings)
    try:
        opens = launch(runner) if launch else ""
        from ..tui.app import TorchXTuiApp

        app = TorchXTuiApp(runner, settings, problem=problem, opens=opens, config_file=config_file)
        # The loop of `asyncio.run` would wait at its end for every thread that still works.
        result = app.run(mouse=settings.mouse, loop=asyncio.new_event_loop())
    finally:
        # A backend that hangs ends with the process.
        AwaitedCall(runner.close, "close").wait(_CLOSE_TIMEOUT_S)
    # Quitting returns a code; without one the app has crashed.
    return leave(result if isinstance(result, int) else app.return_code or 1)


def _give_terminal_a_size() -> None:
    """Set a terminal of unknown size, as new containers have, to 80x24; it reports its size later.

    Textual and Rich assume two different sizes otherwise, and draw for each in turn.
    """
    import fcntl
    import struct
    import termios

    for stream in (sys.stdin, sys.stderr):
        with contextlib.suppress(OSError):
            columns, rows = os.get_terminal_size(stream.fileno())
            if not (columns and rows):
                size = struct.pack("HHHH", rows or 24, columns or 80, 0, 0)
                fcntl.ioctl(stream.fileno(), termios.TIOCSWINSZ, size)


def usual_frames(environ: Mapping[str, str]) -> int:
    """Return the frames per second for users who chose none: fewer over SSH to save bandwidth; 0 for Textual's own."""
    from ..settings.choices import FRAMES_PER_SECOND

    least = FRAMES_PER_SECOND.start
    chosen = environ.get("TEXTUAL_FPS", "")
    if chosen.isdecimal():
        return max(least, int(chosen))
    return least if "SSH_CONNECTION" in environ else 0


def leave(code: int) -> NoReturn:
    """End the process without the interpreter's shutdown.

    Threads may be searching logs in google-re2, which is C++: the shutdown cannot unwind them and would abort.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
