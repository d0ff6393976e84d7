"""Schedulers whose logs are no files: one that only gives lines, one that gives records and can be cut off."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator

from torchx_tui.backends.api import Capabilities, DescribeAppResponse, ListAppResponse, Scheduler, Stream
from torchx_tui.logs.source.log_place import LogPlace
from torchx_tui.logs.source.stream import Cursor, Record, TimeCursor
from torchx_tui.specs.roles import AppDryRunInfo, Role
from torchx_tui.specs.status import AppState


class LinesScheduler(Scheduler):
    """Only implements `log_iter`."""

    capabilities = Capabilities()

    def __init__(self, session_name: str = "torchx", replicas: int = 1) -> None:
        super().__init__("lines", session_name)
        self.replicas = replicas
        self.state = AppState.RUNNING
        self.lines: dict[int, list[tuple[str, str]]] = defaultdict(list)
        self.opened = 0
        self.reading = 0
        self.changed = threading.Condition()
        self.cuts: dict[int, int] = defaultdict(int)
        self.failure: Exception | None = None

    def write(self, k: int, *lines: str, stream: str = "c") -> None:
        with self.changed:
            self.lines[k] += [(stream, line) for line in lines]
            self.changed.notify_all()

    def cut(self, k: int) -> None:
        """Break off whatever reads a replica now."""
        with self.changed:
            self.cuts[k] += 1
            self.changed.notify_all()

    def end(self, state: AppState = AppState.SUCCEEDED) -> None:
        with self.changed:
            self.state = state
            self.changed.notify_all()

    def log_iter(
        self, app_id, role_name, k=0, regex=None, since=None, until=None, should_tail=False, streams=None
    ) -> LineReader:
        if self.failure is not None:
            raise self.failure
        return LineReader(self, k, streams)

    def schedule(self, dryrun_info):
        raise NotImplementedError

    def _submit_dryrun(self, app, cfg):
        return AppDryRunInfo(app, str)

    def describe(self, app_id):
        role = Role("trainer", "image", entrypoint="python3", num_replicas=self.replicas)
        return DescribeAppResponse(app_id=app_id, state=self.state, roles=[role])

    def list(self, cfg=None):
        return [ListAppResponse("app", self.state)]

    def _cancel_existing(self, app_id):
        self.end(AppState.CANCELLED)


class LineReader:
    """Lines as they come; `close` from another thread ends it."""

    def __init__(self, scheduler: LinesScheduler, k: int, streams: Stream | None) -> None:
        self._scheduler = scheduler
        self._k = k
        self._letter = {Stream.STDOUT: "o", Stream.STDERR: "e"}.get(streams or Stream.COMBINED)
        self._at = 0
        self._closed = False
        self._cut = scheduler.cuts[k]
        with scheduler.changed:
            scheduler.opened += 1
            scheduler.reading += 1

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return self.next_line()[1]

    def next_line(self) -> tuple[str, str]:
        scheduler = self._scheduler
        with scheduler.changed:
            while not self._closed:
                if scheduler.cuts[self._k] != self._cut:
                    raise ConnectionError("connection reset by peer")
                lines = scheduler.lines[self._k]
                if self._at < len(lines):
                    self._at += 1
                    if self._letter in (None, lines[self._at - 1][0]):
                        return lines[self._at - 1]
                elif scheduler.state is not AppState.RUNNING:
                    break
                else:
                    scheduler.changed.wait()
        raise StopIteration

    def close(self) -> None:
        scheduler = self._scheduler
        with scheduler.changed:
            if not self._closed:
                scheduler.reading -= 1
            self._closed = True
            scheduler.changed.notify_all()


class RecordScheduler(LinesScheduler):
    """Gives records with times and letters, from a time on.

    The lines are those of `write`: line n has the time ``1_700_000_000 + n / 4``.
    """

    capabilities = Capabilities(log_streams=(Stream.STDOUT, Stream.STDERR, Stream.COMBINED))

    def __init__(self, session_name: str = "torchx", replicas: int = 1) -> None:
        super().__init__(session_name, replicas)
        self.cursors: list[Cursor | None] = []

    def log_stream(
        self, app_id, role_name, k, stream, cursor=None, *, since=None, follow=True, notices=True
    ) -> RecordReader:
        if self.failure is not None:
            raise self.failure
        self.cursors.append(cursor)
        return RecordReader(self, k, cursor)


class RecordReader:
    is_complete = False

    def __init__(self, scheduler: RecordScheduler, k: int, cursor: Cursor | None) -> None:
        self._lines = LineReader(scheduler, k, None)
        assert cursor is None or isinstance(cursor, TimeCursor)
        self._seen = LogPlace(cursor)
        # As a backend that can be asked for whole seconds alone.
        self._since = cursor.nanoseconds // 10**9 * 10**9 if cursor else 0
        self._number = 0

    @property
    def cursor(self) -> TimeCursor | None:
        return self._seen.cursor

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        while True:
            stream, line = self._lines.next_line()
            nanoseconds = (6_800_000_000 + self._number) * 250_000_000
            self._number += 1
            if nanoseconds >= self._since and self._seen.is_new(nanoseconds):
                return Record(line.encode(), nanoseconds / 1e9, stream)

    def close(self) -> None:
        self._lines.close()
