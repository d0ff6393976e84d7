"""Several logs at the same time, each read by a thread of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence

from .log_reading import Item, LogReading

# Records that wait to be taken, of all logs together.
_WAITING = 256
# How often (s) it is looked whether anything is still wanted.
_LOOK = 0.2


def read_side_by_side(reading: LogReading, logs: Sequence[Callable[[], Iterator[Item]]]) -> Iterator[Item]:
    """Yield the records of several logs as they come, until all have ended.

    Raises:
        Exception: whatever the first one raised that failed.
    """
    waiting: queue.Queue[Item | Exception | None] = queue.Queue(_WAITING)

    def put(item: Item | Exception | None) -> None:
        while not reading.is_stopped:
            try:
                waiting.put(item, timeout=_LOOK)
            except queue.Full:
                continue
            return

    def read(items: Callable[[], Iterator[Item]]) -> None:
        try:
            for item in items():
                put(item)
            put(None)
        except Exception as error:  # raised where the records are taken
            put(error)

    for number, items in enumerate(logs):
        threading.Thread(target=read, args=(items,), name=f"log-{reading.name}-{number}", daemon=True).start()
    left = len(logs)
    while left and not reading.is_stopped:
        try:
            item = waiting.get(timeout=_LOOK)
        except queue.Empty:
            continue
        if item is None:
            left -= 1
        elif isinstance(item, Exception):
            raise item
        else:
            yield item
