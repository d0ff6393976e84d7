"""Calls into a plugin: what it raises is made ours, what it prints is taken away, and one that hangs is given up."""

from __future__ import annotations

import logging
from collections.abc import Callable
from subprocess import CalledProcessError
from typing import TypeVar

from ...specs import InvalidRunConfigException, SchedulerError, TorchXTuiError
from ...specs.calls import CapturedOutput, LimitedCaller, NoAnswerError, capture_prints
from ...specs.errors import describe_error

logger = logging.getLogger(__name__)

T = TypeVar("T")

# How long a plugin may take for an answer (s); the dashboard itself waits less long.
ANSWER_SECONDS = 60.0
# How long it may take for what asks no backend (s).
QUICK_SECONDS = 10.0
# Launches, and the builds before them, take what they take (s).
LAUNCH_SECONDS = 24 * 3600.0


class PluginCalls:
    """Calls into one plugin.

    Args:
        name: the scheduler's name.
        origin: where it comes from, for messages.
    """

    def __init__(self, name: str, origin: str) -> None:
        self.name = name
        self.origin = origin
        self._caller = LimitedCaller(f"plugin-{name}")
        # Something of it hangs often while something else is quick.
        self._launcher = LimitedCaller(f"plugin-launch-{name}")

    def call(self, what: str, function: Callable[[], T], seconds: float = ANSWER_SECONDS) -> T:
        """Call a function of the plugin.

        Args:
            what: what is done, for messages, such as "list jobs".
            function: the call.
            seconds: how long it may take.

        Raises:
            TorchXTuiError: it raised something, or gave no answer in time; the message names the plugin.
        """
        caller = self._launcher if seconds == LAUNCH_SECONDS else self._caller
        try:
            return caller.call(lambda: self.run(what, function), seconds)
        except NoAnswerError as error:
            raise SchedulerError(f"{self.name} could not {what}: {error} ({self.origin})") from error

    def run(self, what: str, function: Callable[[], T]) -> T:
        """Call a function of the plugin in this thread, however long that takes.

        Raises:
            TorchXTuiError: see `call`.
        """
        with capture_prints() as printed:
            try:
                return function()
            except BaseException as error:  # SystemExit too: it is no plugin's to end the program
                raise self.translated(what, error, printed) from error
            finally:
                if text := printed.text():
                    logger.info("%s printed, asked to %s: %s", self.name, what, text)

    def translated(self, what: str, error: BaseException, printed: CapturedOutput | None = None) -> TorchXTuiError:
        """Return an error of ours for whatever a plugin raised.

        Args:
            what: what it was asked to do.
            error: what it raised.
            printed: what it printed before.
        """
        if isinstance(error, TorchXTuiError):
            return error
        logger.warning("%s could not %s", self.name, what, exc_info=error)
        if type(error).__name__ == "InvalidRunConfigException":
            return InvalidRunConfigException(
                str(error).partition(". Given: ")[0],
                str(getattr(error, "cfg_key", "")),
                getattr(error, "cfg", {}) or {},
            )
        return SchedulerError(f"{self.name} could not {what}: {_error_text(error, printed.text() if printed else '')}")


def _error_text(error: BaseException, printed: str) -> str:
    """Format an error: of a program that failed its own last words, of another also what was printed last."""
    if not isinstance(error, CalledProcessError):
        return ": ".join([describe_error(error), *_last_line(printed)])
    said = error.stderr or error.output or b""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    command = [error.cmd] if isinstance(error.cmd, (str, bytes)) else list(error.cmd)
    ended = f"{command[0]} ended with {error.returncode}"
    return ": ".join([ended, *(_last_line(text) or _last_line(printed))])


def _last_line(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()[-1:]]
