"""What a feed does with a stream that fails or ends, and when it looks at the limits."""

import errno
import json

import pytest
from support.waiting import PATIENCE

from torchx_tui.logs.source.stream import LineCursor, Record
from torchx_tui.logs.spool.feed import SpoolFeed
from torchx_tui.logs.spool.replica_spool import ReplicaSpool
from torchx_tui.specs import NotAllowedError


class Stream:
    """Gives records, and keeps whether it was closed."""

    cursor = LineCursor(1)

    def __init__(self, records, *, is_complete=False):
        self._records = iter(records)
        self.is_complete = is_complete
        self.closed = False

    def __iter__(self):
        return self._records

    def close(self):
        self.closed = True


class Source:
    """Opens streams and keeps the limits; ``failures`` come before the first stream, the last one for ever."""

    def __init__(self, *failures, records=(), final=lambda: False):
        self.failures = list(failures)
        self.records = list(records)
        self.opened = []
        self.asked = self.taken = 0
        self.checked_after = []
        self.is_final = final
        self.is_complete = False

    def connect(self, cursor):
        self.asked += 1
        if self.failures:
            raise self.failures.pop(0) if len(self.failures) > 1 else self.failures[0]
        self.opened.append(Stream(self._counted(), is_complete=self.is_complete))
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


def fed(spool, source):
    """Feed a spool until the feed ends by itself."""
    feed = SpoolFeed(spool, source, source)
    feed.start()
    assert feed.join(PATIENCE)


def test_a_complete_log_is_read_once(spool):
    source = Source(records=[Record(b"a\n", None, "c"), Record(b"not whole", None, "c")])
    source.is_complete = True
    fed(spool, source)
    (segment,) = spool.segments()
    assert segment.data.read(0, 100) == b"a\nnot whole"
    assert (spool.ended, spool.trouble, spool.notices) == (True, "", [])
    assert [stream.closed for stream in source.opened] == [True]


def test_the_limits_are_checked_every_64_kb(spool):
    sizes = (65_535, 1, 65_536, 30_000, 30_000, 30_000, 60_000)
    source = Source(records=[Record(b"x" * (size - 1) + b"\n", None, "c") for size in sizes])
    source.is_complete = True
    fed(spool, source)
    assert source.checked_after == [2, 3, 6]


@pytest.mark.parametrize(
    "failure", [NotImplementedError("no logs"), NotAllowedError("no logs"), ValueError("no logs")], ids=repr
)
def test_what_can_never_be_read_is_asked_for_once(spool, failure):
    source = Source(failure)
    fed(spool, source)
    assert source.asked == 1
    assert (spool.ended, spool.notices) == (True, ["trainer/0: its log cannot be read: no logs"])


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize(
    "failure",
    [ConnectionError("away"), json.JSONDecodeError("away", "{", 1), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "away")],
    ids=repr,
)
def test_what_may_be_read_later_is_asked_for_again(spool, failure):
    source = Source(failure, ConnectionError(), NotImplementedError("no logs"))
    fed(spool, source)
    assert source.asked == 3
    assert spool.notices == ["trainer/0: its log cannot be read: no logs"]


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize(("failure", "reason"), [(OSError("away"), "away"), (OSError(), "OSError")])
def test_the_rest_of_a_job_that_has_ended_is_given_up_after_four_failures(spool, failure, reason):
    source = Source(failure, final=lambda: True)
    fed(spool, source)
    assert source.asked == 4
    assert spool.notices == [f"trainer/0: the rest of its log cannot be read: {reason}"]


@pytest.mark.usefixtures("quick_retries")
def test_a_job_whose_state_cannot_be_asked_for_is_read_on(spool):
    states = iter([ConnectionError(), False, True])

    def is_final():
        state = next(states)
        if isinstance(state, Exception):
            raise state
        return state

    source = Source(final=is_final)
    fed(spool, source)
    assert (source.asked, spool.ended, spool.notices) == (3, True, [])
    assert all(stream.closed for stream in source.opened)


def test_a_fault_ends_the_reading_with_a_notice(spool, monkeypatch):
    monkeypatch.setattr(spool, "flush", lambda: 1 / 0)
    source = Source(final=lambda: True)
    fed(spool, source)
    assert spool.notices == ["trainer/0: reading its log failed; torchx-tui.log says why"]


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "is full"), (errno.EDQUOT, "is full"), (errno.EROFS, "cannot be written (Read-only file system)")],
)
def test_what_cannot_be_written_is_written_later(spool, monkeypatch, number, words):
    failures = [OSError(number, "Read-only file system")] * 2
    take = spool.take

    def refused(*arguments):
        if failures:
            raise failures.pop()
        take(*arguments)

    monkeypatch.setattr(spool, "take", refused)
    source = Source(records=[Record(b"a\n", None, "c"), Record(b"b\n", None, "c")])
    source.is_complete = True
    fed(spool, source)
    (segment,) = spool.segments()
    assert segment.data.read(0, 100) == b"a\nb\n"
    root = spool.folder.parent.parent
    trouble, recovered = spool.notices
    assert str(root) in trouble
    assert words in trouble
    assert (recovered, spool.trouble) == (f"{root} can be written again: reading continues", "")
