"""Which replica and which output of a log is asked for, and how a plugin is asked for it."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

from ...specs.errors import JobNotFoundError, LogUnreadableError, SchedulerError, UnknownReplicaError
from ..api import split_lines
from ..shared.replicas import pick_replica
from ..types import DescribeAppResponse, Stream
from .calls import ask

# Lines that are read ahead; then the plugin waits until they are taken.
_AHEAD = 2000
# After so many pieces without an end, and none with one, each is a line whose end the plugin has left out.
_ENDLESS = 3


class _Shared:
    """What the reading threads and the iterator have in common; not the iterator, so that it can be forgotten."""

    def __init__(self, readers: int) -> None:
        self.changed = threading.Condition()
        self.lines: deque[str] = deque()
        self.readers = readers
        self.error: BaseException | None = None
        self.closed = False
        self.sources: list[Iterable[str]] = []

    def put(self, line: str) -> bool:
        """Hand a line over, when there is room; tell whether more are wanted."""
        with self.changed:
            self.changed.wait_for(lambda: self.closed or len(self.lines) < _AHEAD)
            if not self.closed:
                self.lines.append(line)
                self.changed.notify_all()
            return not self.closed

    def end(self, error: BaseException | None) -> None:
        """Say that one reader has come to its end."""
        with self.changed:
            self.readers -= 1
            self.error = self.error or error
            self.changed.notify_all()


class PluginLogIterator:
    r"""The lines of one or several outputs as they come, each with its ``\n``; `close` ends a blocked read at once.

    What hangs in the plugin is left to its daemon thread, which closes the plugin's own iterator when it comes back.

    Args:
        name: the scheduler's name.
        opens: begin to read an output each; they are read side by side.
        pattern: only lines in which this is found.
    """

    def __init__(self, name: str, opens: Sequence[Open], pattern: re.Pattern[str] | None = None) -> None:
        self._shared = _Shared(len(opens))
        for begin in opens:
            threading.Thread(
                target=_read, args=(self._shared, name, begin, pattern), name="read-log", daemon=True
            ).start()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Return the next line, as soon as it comes.

        Raises:
            SchedulerError: the plugin could not read on.
        """
        shared = self._shared
        with shared.changed:
            shared.changed.wait_for(lambda: shared.lines or shared.closed or not shared.readers or shared.error)
            if shared.closed:
                raise StopIteration
            if shared.lines:
                shared.changed.notify_all()
                return shared.lines.popleft()
            error, shared.error = shared.error, None
        self.close()
        if error is not None:
            raise error
        raise StopIteration

    def take_waiting(self) -> list[str]:
        """Return the lines that are there already, beyond the last."""
        shared = self._shared
        with shared.changed:
            lines = list(shared.lines)
            shared.lines.clear()
            shared.changed.notify_all()
        return lines

    def close(self) -> None:
        """End the iteration at once."""
        shared = self._shared
        with shared.changed:
            if shared.closed:
                return
            shared.closed = True
            shared.lines.clear()
            sources = list(shared.sources)
            shared.changed.notify_all()
        if sources:
            # One that is made for it ends its own read by this; it may block, and a generator at work refuses it.
            threading.Thread(target=_close_all, args=(sources,), name="close-log", daemon=True).start()

    def __del__(self) -> None:
        self.close()


def _read(shared: _Shared, name: str, begin: Open, pattern: re.Pattern[str] | None) -> None:
    """Read one output to its end."""
    error: BaseException | None = None
    try:
        ask(name, "read a log", lambda: _hand_over(shared, begin, pattern))
    except BaseException as raised:  # the iterator raises it
        error = raised
    shared.end(error)


def _hand_over(shared: _Shared, begin: Open, pattern: re.Pattern[str] | None) -> None:
    source = begin()
    with shared.changed:
        shared.sources.append(source)
    try:
        for line in whole_lines(source):
            if (pattern is None or pattern.search(line)) and not shared.put(line):
                return
            if shared.closed:
                return
    finally:
        _close_all([source])


def _close_all(sources: Sequence[Iterable[str]]) -> None:
    for source in sources:
        with suppress(Exception):
            source.close()  # type: ignore[attr-defined]


def whole_lines(pieces: Iterable[str]) -> Iterator[str]:
    r"""Give whole lines, each with its ``\n`` but perhaps the last.

    Args:
        pieces: lines, parts of lines, or several at once; a plugin that leaves all ends out gives a line each.
    """
    rest: list[str] = []
    ends_seen = lines_without_end = False
    for piece in pieces:
        for part in split_lines(str(piece)):
            if part.endswith("\n"):
                ends_seen = True
                yield "".join([*rest, part])
                rest.clear()
            elif part and lines_without_end and not ends_seen:
                yield f"{part}\n"
            elif part:
                rest.append(part)
        if not ends_seen and len(rest) >= _ENDLESS:
            lines_without_end = True
            yield from (f"{line}\n" for line in rest)
            rest.clear()
    if rest:
        yield "".join(rest)


Open = Callable[[], Iterable[str]]


def check_replica(
    described: DescribeAppResponse | None,
    scheduler: str,
    app_id: str,
    role_name: str,
    k: int,
    stream: Stream | None,
    known: Sequence[Stream],
) -> Stream:
    """Return the output that is meant, having checked that there is such a replica.

    Args:
        described: the app; without roles, the plugin decides about them.
        scheduler: the scheduler's name.
        app_id: the app's id.
        role_name: the role.
        k: the replica's number in the role.
        stream: the output; combined where None.
        known: the outputs that the scheduler is known to have.

    Raises:
        JobNotFoundError: there is no such app.
        LogUnreadableError: the scheduler has no logs.
        UnknownReplicaError: there is no such role, replica or output.
    """
    if not known:
        raise LogUnreadableError(f"{scheduler} has no logs to read")
    if stream is not None and stream not in known:
        valid = ", ".join(output.value for output in known)
        raise UnknownReplicaError(f"{scheduler} has no output {stream!s}: it has {valid}")
    if described is None:
        raise JobNotFoundError(app_id, scheduler)
    if described.roles:
        numbers = {role.name: {number: number for number in range(role.num_replicas)} for role in described.roles}
        pick_replica(app_id, numbers, role_name, k)
    return Stream.COMBINED if stream is None else Stream(stream)


def outputs(
    name: str, theirs: Any, replica: tuple[str, str, int], wanted: Mapping[str, Any], stream: Stream
) -> tuple[list[Open], str]:
    """Find the outputs of the plugin that together are the one that is asked for, and why it refused them.

    A plugin that does not merge its outputs refuses `COMBINED` at the call: then both are read.

    Args:
        name: the scheduler's name.
        theirs: the plugin's scheduler.
        replica: app id, role and number.
        wanted: further arguments of its `log_iter`.
        stream: which output.

    Raises:
        LogUnreadableError: it has no logs.
        SchedulerError: it could not be asked.
    """
    from .convert import ToTorchX

    turned = ToTorchX()

    def begin(output: Stream) -> Iterable[str]:
        return theirs.log_iter(*replica, **wanted, streams=turned.stream(output))

    try:
        first = ask(name, "give a log", partial(begin, stream))
    except SchedulerError as error:
        if isinstance(error.__cause__, NotImplementedError):
            raise LogUnreadableError(str(error)) from error
        if not isinstance(error.__cause__, ValueError):
            raise
        if stream is not Stream.COMBINED:
            return [], str(error)
    else:
        return [lambda: first], ""
    both = [partial(begin, output) for output in (Stream.STDOUT, Stream.STDERR)]
    if wanted["should_tail"]:
        return list(both), ""
    return [lambda: chain.from_iterable(stream() for stream in both)], ""
