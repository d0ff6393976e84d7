"""A guest that answers several questions at once, and gives streams of lines: what a plugin lives in.

Requests are ``{"id": 7, "call": "list", "arguments": [...]}``, or ``{"id": 7, "lines": [...]}`` for a stream, then
``{"id": 7, "room": 1000}`` for that many more lines, and ``{"id": 7, "close": true}``. Answers are
``{"id": 7, "value": ...}``, which also ends a stream, ``{"id": 7, "error": {...}}``, and ``{"id": 7, "lines": [...]}``,
which is empty where a stream begins. Values and errors are those of whoever asks: `backends/plugin/wire.py` has them.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from .host import GuestError, GuestProcess
from .interpreter import own_interpreter
from .settings import GuestSettings

STREAM_AHEAD = 2000
"""Lines of a stream that are sent before any was taken."""

# After so many questions without an answer the guest is ended; the next question starts it anew.
_MAX_HANGING = 3
# A guest that did not start is not started again for so long (s).
_RETRY_AFTER_S = 30.0

_log = logging.getLogger(__name__)


class ServiceRaisedError(Exception):
    """The guest answered with an error.

    Args:
        error: What it says.
        printed: What was printed since the question, the end of it.
    """

    def __init__(self, error: dict[str, Any], printed: str) -> None:
        super().__init__(error)
        self.error = error
        self.printed = printed


class NoReplyError(GuestError):
    """A guest did not answer in time."""


class Service:
    """A guest of our own interpreter, started at the first question and again after its end.

    Args:
        name: What it is called in threads and the log file.
        module: Answers the questions; its ``serve`` is called with the descriptors of requests and answers.
        opening: The arguments of the call ``open``, which is the first of each start.
        start_timeout_s: Seconds for the start and that answer.
    """

    def __init__(self, name: str, module: str, opening: Sequence[Any], start_timeout_s: float) -> None:
        self._name = name
        self._module = module
        self._opening = opening
        self._start_timeout_s = start_timeout_s
        self._connection: _Connection | None = None
        self._failed_at = -_RETRY_AFTER_S
        self._failure: Exception | None = None
        self._lock = threading.Lock()

    def open(self) -> Any:
        """Start the guest unless it runs; return its answer to ``open``.

        Raises:
            NoReplyError: It did not start or answer in time, now or a moment ago.
            GuestError: It ended.
            ServiceRaisedError: It answered with an error.
        """
        return self._connect().opened

    def call(self, name: str, arguments: Sequence[Any], timeout_s: float, *, keep: bool = False) -> Any:
        """Ask a question; return the value of its answer.

        Args:
            name: What is asked.
            arguments: Plain data.
            timeout_s: Seconds to wait for the answer.
            keep: While this is not answered, the guest is not ended because of others that hang.

        Raises:
            NoReplyError: No answer came in time.
            GuestError: The guest ended, or does not start.
            ServiceRaisedError: It answered with an error.
        """
        return self._connect().call({"call": name, "arguments": list(arguments)}, timeout_s, keep)

    def lines(self, arguments: Sequence[Any], timeout_s: float) -> ServiceLines:
        """Begin a stream of lines. Raises as `call` does."""
        connection = self._connect()
        exchange = connection.ask({"lines": list(arguments)})
        lines = ServiceLines(connection, exchange)
        with exchange.changed:
            if not exchange.changed.wait_for(lambda: exchange.is_begun or exchange.is_answered, timeout_s):
                exchange.is_given_up = True
                raise NoReplyError(f"no answer within {timeout_s:g} s")
            if exchange.error is not None and not exchange.is_begun:
                raise exchange.error
        return lines

    def is_running(self) -> bool:
        """Tell whether there is a guest to ask."""
        connection = self._connection
        return connection is not None and connection.is_usable()

    def close(self) -> None:
        """End the guest."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _connect(self) -> _Connection:
        with self._lock:
            if self._connection is not None and self._connection.is_usable():
                return self._connection
            if self._failure is not None and time.monotonic() - self._failed_at < _RETRY_AFTER_S:
                raise self._failure
            if self._connection is not None:
                _log.warning("the guest of %s is started again", self._name)
                self._connection.close()
            self._connection, self._failure = None, None
            try:
                self._connection = _Connection(self._name, self._module, self._opening, self._start_timeout_s)
            except (GuestError, ServiceRaisedError) as error:
                self._failed_at, self._failure = time.monotonic(), error
                raise
            return self._connection


class _Exchange:
    """A question and what was answered so far."""

    def __init__(self, number: int, printed_size: int, *, keep: bool = False) -> None:
        self.number = number
        self.printed_size = printed_size
        self.keep = keep
        self.changed = threading.Condition()
        self.lines: deque[str] = deque()
        self.value: Any = None
        self.error: Exception | None = None
        self.is_begun = False
        self.is_answered = False
        self.is_given_up = False

    def answer(self, value: Any, error: Exception | None) -> None:
        with self.changed:
            self.value, self.error, self.is_answered = value, error, True
            self.changed.notify_all()


class _Connection:
    def __init__(self, name: str, module: str, opening: Sequence[Any], timeout_s: float) -> None:
        # A plugin's jobs may be processes of this machine, in sessions of their own: those go on.
        service = {"service": module, "arguments": [], "path": sys.path, "memory": 0, "adopt": False}
        self._name = name
        self._lock = threading.Lock()
        # A stream that the garbage collector closes writes as well, in a thread that may be writing.
        self._writing = threading.RLock()
        self._exchanges: dict[int, _Exchange] = {}
        self._next = 1
        self._ended = ""
        self._logged_size = 0
        self._process = GuestProcess(own_interpreter(), GuestSettings(), lambda: None, service)
        threading.Thread(target=self._read, name=f"guest-{name}", daemon=True).start()
        try:
            self.opened = self.call({"call": "open", "arguments": list(opening)}, timeout_s, keep=False)
        except BaseException:
            self.close()
            raise

    def is_usable(self) -> bool:
        """Tell whether it still answers."""
        with self._lock:
            hanging = sum(exchange.is_given_up for exchange in self._exchanges.values())
            kept = any(exchange.keep and not exchange.is_given_up for exchange in self._exchanges.values())
            return not self._ended and (hanging < _MAX_HANGING or kept)

    def ask(self, request: dict[str, Any], *, keep: bool = False) -> _Exchange:
        with self._lock:
            exchange = _Exchange(self._next, self._process.printed_size, keep=keep)
            self._next += 1
            ended = self._ended
            if not ended:
                self._exchanges[exchange.number] = exchange
        if ended:
            raise GuestError(ended)
        self.send({"id": exchange.number, **request})
        return exchange

    def call(self, request: dict[str, Any], timeout_s: float, keep: bool) -> Any:
        exchange = self.ask(request, keep=keep)
        with exchange.changed:
            if not exchange.changed.wait_for(lambda: exchange.is_answered, timeout_s):
                exchange.is_given_up = True
                raise NoReplyError(f"no answer within {timeout_s:g} s")
        if exchange.error is not None:
            raise exchange.error
        return exchange.value

    def send(self, request: dict[str, Any]) -> None:
        with self._writing:
            if not self._ended:
                self._process.send(request, lambda: None)

    def close(self) -> None:
        """Tell the guest to end; its reader sees to the rest."""
        with self._writing, self._lock:
            if not self._ended:
                self._ended = "its process was ended"
                self._process.hang_up()

    def _read(self) -> None:
        reason = "its process was ended"
        try:
            while "ended" not in (answer := self._process.read(None, lambda: None, "")):
                self._take(answer)
            reason = GuestProcess.describe_end(answer)
        except GuestError as error:
            reason = error.reason
        except Exception:
            _log.exception("the answers of %s cannot be read", self._name)
        with self._lock:
            self._ended = self._ended or reason
            left = list(self._exchanges.values())
            self._exchanges.clear()
        for exchange in left:
            exchange.answer(None, GuestError(self._ended, self._process.printed_since(exchange.printed_size)))
        with self._writing:
            self._process.end()

    def _take(self, answer: dict[str, Any]) -> None:
        with self._lock:
            exchange = self._exchanges.get(answer.get("id", 0))
            if exchange is not None and "lines" not in answer:
                del self._exchanges[exchange.number]
        printed = self._process.printed_since(self._logged_size)
        if printed:
            self._logged_size = self._process.printed_size
            _log.info("%s printed: %s", self._name, printed)
        if exchange is None:
            return
        if "lines" in answer:
            with exchange.changed:
                exchange.is_begun = True
                exchange.lines.extend(str(line) for line in answer["lines"])
                exchange.changed.notify_all()
        elif "error" in answer:
            _log.info("%s answered with an error: %s", self._name, answer["error"].get("traceback", ""))
            printed = self._process.printed_since(exchange.printed_size)
            exchange.answer(None, ServiceRaisedError(dict(answer["error"]), printed))
        else:
            exchange.answer(answer.get("value"), None)


class ServiceLines:
    """The lines of a stream as they come; `close` ends a blocked read at once."""

    def __init__(self, connection: _Connection, exchange: _Exchange) -> None:
        self._connection = connection
        self._exchange = exchange
        self._taken = 0
        self._closed = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Return the next line, as soon as it comes.

        Raises:
            GuestError: The guest ended.
            ServiceRaisedError: It could not go on.
        """
        exchange = self._exchange
        with exchange.changed:
            exchange.changed.wait_for(lambda: exchange.lines or exchange.is_answered or self._closed)
            line = exchange.lines.popleft() if exchange.lines and not self._closed else None
            error, exchange.error = (
                (None, exchange.error) if line is not None or self._closed else (exchange.error, None)
            )
        if line is None:
            if error is not None:
                raise error
            raise StopIteration
        self._taken += 1
        if self._taken >= STREAM_AHEAD // 2:
            self._connection.send({"id": exchange.number, "room": self._taken})
            self._taken = 0
        return line

    def close(self) -> None:
        """End the iteration at once."""
        with self._exchange.changed:
            if self._closed:
                return
            self._closed = True
            self._exchange.lines.clear()
            self._exchange.changed.notify_all()
        if not self._exchange.is_answered:
            self._connection.send({"id": self._exchange.number, "close": True})

    def __del__(self) -> None:
        self.close()
