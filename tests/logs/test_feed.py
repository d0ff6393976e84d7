"""A feed whose stream fails or ends, or whose disk is full."""

import errno
import json
import os

import pytest
from support.waiting import wait_until

from torchx_tui.logs.source.stream import LineCursor, Record
from torchx_tui.logs.spool.feed import Feed
from torchx_tui.logs.spool.spool import Spool
from torchx_tui.specs.errors import NotAllowedError, UnknownReplicaError

LINES = [Record(b"a\n", None, "c"), Record(b"b\n", None, "c")]


class Stream:
    """Gives records, raises those that are exceptions, and stores whether it was closed."""

    closed = False
    cursor = None

    def __init__(self, records, is_complete):
        self._records = records
        self.is_complete = is_complete

    def __iter__(self):
        for number, record in enumerate(self._records):
            if isinstance(record, Exception):
                raise record
            self.cursor = LineCursor(number + 1)
            yield record

    def close(self):
        self.closed = True


class Source:
    """Opens streams; ``failures`` come before the first one, the last failure forever."""

    def __init__(self, *failures, streams=(), final=lambda: False):
        self.failures = list(failures)
        self.streams = list(streams)
        self.opened = []
        self.cursors = []
        self.asked = 0
        self.is_final = final

    def connect(self, cursor):
        self.asked += 1
        self.cursors.append(cursor)
        if self.failures:
            raise self.failures.pop(0) if len(self.failures) > 1 else self.failures[0]
        self.opened.append(Stream(self.streams.pop(0) if self.streams else [], is_complete=len(self.streams) == 0))
        return self.opened[-1]


@pytest.fixture
def spool(tmp_path):
    return Spool(tmp_path / "spool", "trainer/0", lambda: 1_000_000, "a limit")


def feed(spool, source):
    """Feed a spool until the feed ends by itself."""
    Feed(spool, source).start()
    wait_until(lambda: spool.ended, "the end of the log")
    return source


def stored(spool):
    return b"".join(part.data.read(0, 100) for part in spool.parts)


def test_complete_log_is_read_once(spool):
    source = feed(spool, Source(streams=[[*LINES, Record(b"not whole", None, "c")]]))
    assert stored(spool) == b"a\nb\nnot whole"
    assert (spool.is_complete, spool.notices) == (True, [])
    assert [stream.closed for stream in source.opened] == [True]


NO_LOGS = [NotImplementedError("no logs"), NotAllowedError("no logs"), UnknownReplicaError("no logs")]


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize(
    ("failures", "notice"),
    [
        *(([failure], "its log cannot be read: no logs") for failure in NO_LOGS),
        *(
            ([failure, ConnectionError(), NO_LOGS[0]], "its log cannot be read: no logs")
            for failure in (
                ConnectionError("away"),
                ValueError("invalid literal for int()"),
                json.JSONDecodeError("away", "{", 1),
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
def test_value_error_within_a_stream_is_retried(spool):
    source = feed(spool, Source(streams=[[LINES[0], ValueError("a malformed time")], [LINES[1]]]))
    assert (stored(spool), spool.notices) == (b"a\nb\n", [])
    assert source.cursors == [None, LineCursor(1)]


@pytest.mark.usefixtures("quick_retries")
def test_app_of_unknown_state_is_read_on(spool):
    states = iter([ConnectionError(), False, True])

    def is_final():
        state = next(states)
        if isinstance(state, Exception):
            raise state
        return state

    source = feed(spool, Source(streams=[[], [], [], []], final=is_final))
    assert (source.asked, spool.ended, spool.notices) == (3, True, [])
    assert all(stream.closed for stream in source.opened)


def test_fault_ends_the_reading_with_a_notice(spool, monkeypatch):
    monkeypatch.setattr(spool, "flush", lambda: 1 / 0)
    feed(spool, Source(final=lambda: True))
    assert spool.notices == ["trainer/0: reading its log failed; torchx-tui.log says why"]


@pytest.mark.parametrize(
    ("number", "fault", "remedy"),
    [
        (errno.ENOSPC, "The disk of {} is full", "Free some space"),
        (errno.EDQUOT, "The disk of {} is full", "Free some space"),
        (errno.EROFS, "{} cannot be written (Read-only file system)", "Make it writable"),
    ],
)
def test_failed_write_ends_the_spool_until_the_next_feed(spool, monkeypatch, number, fault, remedy):
    def refuse(*_):
        raise OSError(number, "Read-only file system")

    source = Source(streams=[LINES, LINES[:1]])
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", refuse)
        feed(spool, source)
    fault = fault.format(spool.folder.parent.parent)
    notice = f"{fault}: the rest of the log is not read. {remedy}, then open the log again."
    assert (spool.notices, spool.trouble, spool.is_complete) == ([notice], notice, False)
    feed(spool, source)
    # The cursor did not move.
    assert (source.cursors, stored(spool), spool.is_complete) == ([None, None], b"a\n", True)
