"""Work with a log that takes its time, such as saving it: in a thread, in steps, and stopped between two of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass

from textual.message import Message
from textual.message_pump import MessagePump

from ...logs.pattern.pattern import PatternError

_log = logging.getLogger(__name__)

# Seconds between two words of how far it is.
_TELL_EVERY = 0.5


class ExportError(Exception):
    """The work cannot be done; the message is a sentence for a person."""


@dataclass
class ExportTold(Message, bubble=False):
    """The work is so far: a share of 0 to 1, None while that is not known."""

    export: LogExport
    share: float | None


@dataclass
class ExportDone(Message, bubble=False):
    """The work is done, or cannot be done.

    Attributes:
        result: what came of it, None where it failed.
        failure: why it failed, in a sentence.
    """

    export: LogExport
    result: object
    failure: str = ""


class LogExport:
    """Carries out work in a daemon thread of its own.

    Args:
        target: who is told, by `ExportTold` and in the end by `ExportDone`; not any more once it is stopped.
        work: the work: it yields how far it is after each step, and returns its result. It is closed when it is
            stopped, and cleans up then.
        what: what is done, such as ``Saving``.
    """

    def __init__(self, target: MessagePump, work: Generator[float | None, None, object], what: str) -> None:
        self.what = what
        self._target = target
        self._work = work
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-export", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the work at its next step."""
        self._stop.set()

    def join(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for the thread's end; return whether it ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        told_at = time.monotonic()
        result: object = None
        failure = ""
        try:
            while not self._stop.is_set():
                share = next(self._work)
                if time.monotonic() - told_at > _TELL_EVERY:
                    told_at = time.monotonic()
                    self._post(ExportTold(self, share))
                # Others may have the interpreter between two steps.
                time.sleep(0)
            self._work.close()
        except StopIteration as end:
            result = end.value
        except (ExportError, PatternError) as error:
            failure = str(error)
        except Exception as error:
            _log.exception("%s a log failed", self.what)
            failure = f"{self.what} failed: {error}"
        self._post(ExportDone(self, result, failure))

    def _post(self, message: Message) -> None:
        # The loop may be gone already when the app ends.
        with suppress(RuntimeError):
            if not self._stop.is_set():
                self._target.post_message(message)
