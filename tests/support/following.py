"""Reading a log stream in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from torchx_tui.logs.source.stream import Cursor, LogStream
from torchx_tui.specs.errors import SchedulerError

from .waiting import PATIENCE


class Follower:
    """Reads a stream in a thread, and takes it up where it broke off, as the spools do."""

    def __init__(self, open_stream: Callable[[Cursor | None], LogStream]) -> None:
        self._open = open_stream
        self.records: list[Any] = []
        self.size = 0
        self.cuts: list[str] = []
        self._closed = False
        self.stream = open_stream(None)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    @property
    def data(self) -> bytes:
        return b"".join(record.data for record in tuple(self.records))

    def of(self, letter: str) -> bytes:
        return b"".join(record.data for record in tuple(self.records) if record.stream == letter)

    def join(self) -> None:
        """Wait for the end of the stream, which is that of a job that may print a lot."""
        self.thread.join(4 * PATIENCE)
        assert not self.thread.is_alive(), "the stream did not end"

    def close(self) -> None:
        self._closed = True
        self.stream.close()

    def _read(self) -> None:
        while not self._closed:
            try:
                if self.cuts:
                    self.stream = self._open(self.stream.cursor)
                for record in self.stream:
                    self.records.append(record)
                    self.size += len(record.data)
                return
            except (SchedulerError, OSError) as error:
                self.cuts.append(str(error))
                time.sleep(0.2)
