"""What a feed does with a stream that fails or ends, and when it checks the limits."""

import errno
import json

import pytest
from support.waiting import PATIENCE

from torchx_tui.logs.source.stream import LineCursor, Record
from torchx_tui.logs.spool.feed import SpoolFeed
from torchx_tui.logs.spool.replica_spool import ReplicaSpool
from torchx_tui.specs.errors import NotAllowedError


class Stream:
    """Gives records, and stores whether it was closed."""

    cursor = LineCursor(1)
    closed = False

    def __init__(self, records, is_complete):
        self._records = records
        self.is_complete = is_complete

    def __iter__(self):
        return self._records

    def close(self):
        self.closed = True


class Source:
    """Opens streams and keeps the limits; ``failures`` come before the first stream, the last one forever."""

    def __init__(self, *failures, records=None, final=lambda: False):
        self.failures = list(failures)
        self.records = records or []
        self.opened = []
        self.asked = self.taken = 0
        self.checked_after = []
        self.is_final = final

    def connect(self, cursor):
        self.asked += 1
        if self.failures:
            raise self.failures.pop(0) if len(self.failures) > 1 else self.failures[0]
        self.opened.append(Stream(self._counted(), is_complete=bool(self.records)))
        return self.opened[-1]

    def _counted(self):
        for record in self.records:
            self.taken += 1
            yield record

    def enforce_limits(self, spool):
        self.checked_after.append(self.taken)

    def free_space(self, spool):
        return False


@pytest.fixture
def spool(tmp_path):
    made = ReplicaSpool(tmp_path / "spool", "trainer/0", 1_000_000)
    yield made
    made.close()


def feed(spool, source):
    """Feed a spool until the feed ends by itself."""
    feed = SpoolFeed(spool, source, source)
    feed.start()
    assert feed.join(PATIENCE)
    return source


def stored(spool):
    (segment,) = spool.segments()
    return segment.data.read(0, 100)


def test_complete_log_is_read_once(spool):
    source = feed(spool, Source(records=[Record(b"a\n", None, "c"), Record(b"not whole", None, "c")]))
    assert stored(spool) == b"a\nnot whole"
    assert (spool.ended, spool.trouble, spool.notices) == (True, "", [])
    assert [stream.closed for stream in source.opened] == [True]


def test_limits_are_checked_every_64_kb(spool):
    sizes = (65_535, 1, 65_536, 30_000, 30_000, 30_000, 60_000)
    source = feed(spool, Source(records=[Record(b"x" * (size - 1) + b"\n", None, "c") for size in sizes]))
    assert source.checked_after == [2, 3, 6]


NO_LOGS = [NotImplementedError("no logs"), NotAllowedError("no logs"), ValueError("no logs")]


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize(
    ("failures", "notice"),
    [
        *(([failure], "its log cannot be read: no logs") for failure in NO_LOGS),
        *(
            ([failure, ConnectionError(), NO_LOGS[0]], "its log cannot be read: no logs")
            for failure in (
                ConnectionError("away"),
                json.JSONDecodeError("away", "{", 1),
                UnicodeDecodeError("utf-8", b"\xff", 0, 1, "away"),
            )
        ),
        # The app has ended.
        ([OSError("away")] * 4, "the rest of its log cannot be read: away"),
        ([OSError()] * 4, "the rest of its log cannot be read: OSError"),
    ],
    ids=repr,
)
def test_failures_are_retried_unless_permanent(spool, failures, notice):
    source = feed(spool, Source(*failures, final=lambda: len(failures) > 3))
    assert (source.asked, spool.ended, spool.notices) == (len(failures), True, [f"trainer/0: {notice}"])


@pytest.mark.usefixtures("quick_retries")
def test_app_of_unknown_state_is_read_on(spool):
    states = iter([ConnectionError(), False, True])

    def is_final():
        state = next(states)
        if isinstance(state, Exception):
            raise state
        return state

    source = feed(spool, Source(final=is_final))
    assert (source.asked, spool.ended, spool.notices) == (3, True, [])
    assert all(stream.closed for stream in source.opened)


def test_fault_ends_the_reading_with_a_notice(spool, monkeypatch):
    monkeypatch.setattr(spool, "flush", lambda: 1 / 0)
    feed(spool, Source(final=lambda: True))
    assert spool.notices == ["trainer/0: reading its log failed; torchx-tui.log says why"]


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize(
    ("number", "text"),
    [(errno.ENOSPC, "is full"), (errno.EDQUOT, "is full"), (errno.EROFS, "cannot be written (Read-only file system)")],
)
def test_failed_writes_are_repeated(spool, monkeypatch, number, text):
    failures = [OSError(number, "Read-only file system")] * 2
    take = spool.take

    def refuse_twice(*arguments):
        if failures:
            raise failures.pop()
        take(*arguments)

    monkeypatch.setattr(spool, "take", refuse_twice)
    feed(spool, Source(records=[Record(b"a\n", None, "c"), Record(b"b\n", None, "c")]))
    assert stored(spool) == b"a\nb\n"
    root = spool.folder.parent.parent
    trouble, recovered = spool.notices
    assert f"{root} {text}" in trouble
    assert (recovered, spool.trouble) == (f"{root} can be written again: reading continues", "")
