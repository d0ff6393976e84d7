"""JSON messages, one a line, over a socket: both ends of a worker use this."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Iterator

from ..base.validation import JsonObject

READ_BYTES = 1 << 16
MAX_MESSAGE_BYTES = 32 << 20
STREAM_AHEAD = 2000
"""Lines of a stream that are sent before any was read."""


def send(descriptor: int, message: JsonObject, timeout_s: float | None = None) -> None:
    """Send a message.

    Raises:
        TimeoutError: The other end has read nothing for that long.
        OSError: The other end is closed.
    """
    data = memoryview((json.dumps(message) + "\n").encode())
    poller = select.poll()
    poller.register(descriptor, select.POLLOUT)
    while data:
        if not poller.poll(None if timeout_s is None else timeout_s * 1000):
            raise TimeoutError("it does not accept requests")
        data = data[os.write(descriptor, data) :]


def receive(descriptor: int, idle_s: float | None) -> Iterator[JsonObject]:
    """Yield messages until the other end closes, or has sent none for `idle_s` seconds."""
    decoder = Decoder()
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    while poller.poll(None if idle_s is None else idle_s * 1000):
        data = os.read(descriptor, READ_BYTES)
        if not data:
            return
        yield from decoder.feed(data)


class Decoder:
    """Decodes messages from the bytes of a socket."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[JsonObject]:
        """Return the messages that are complete with these bytes. Raises ValueError for anything but JSON objects."""
        self._rest += data
        if len(self._rest) > MAX_MESSAGE_BYTES:
            raise ValueError(f"its answer is larger than {MAX_MESSAGE_BYTES >> 20} MiB")
        if b"\n" not in data:
            return []
        *lines, self._rest = self._rest.split(b"\n")
        return [_decode(line) for line in lines]


def _decode(line: bytearray) -> JsonObject:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its answer is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise ValueError("its answer is not a JSON object")
    return message
