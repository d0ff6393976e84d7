import itertools
import threading
import time
from typing import Any, cast

import pytest
from log_reading import lines_of
from log_writing import LogWriter
from support.waiting import NEVER, PATIENCE, wait_until

from torchx_tui.logs.lines import background
from torchx_tui.logs.lines.background import LogFollower, poll_interval
from torchx_tui.logs.lines.merge import MergedLog
from torchx_tui.logs.source.log_file import LogFile
from torchx_tui.logs.source.replica_log import ReplicaLog

GONE = b"[this line is no longer in the file]"


class Followed:
    """A log that a follower reads, its writers, and the number of its events."""

    def __init__(self, folder):
        self.events = 0
        self.event = threading.Event()
        self.final = None
        self.writer = LogWriter(folder)
        self.log = MergedLog([self.writer.log])

    def write(self, data, stream="o"):
        self.writer.write(data, stream)

    def start(self):
        self.follower = LogFollower(self.log, self.changed, None if self.final is None else lambda: bool(self.final))
        self.follower.start()

    def changed(self):
        self.events += 1
        self.event.set()

    def wait_for(self, *lines):
        def are_there():
            self.follower.acknowledge()
            return lines_of(self.log) == list(lines)

        wait_until(are_there, f"{lines[-3:]}", PATIENCE)

    def join(self, seconds=PATIENCE):
        return self.follower.join(seconds)

    def close(self):
        self.follower.close()
        return self.join()


@pytest.fixture
def followed(tmp_path):
    made = Followed(tmp_path)
    yield made
    made.follower.close()


def test_new_lines_are_read_until_the_close(followed):
    followed.start()
    followed.write(b"one\n")
    followed.wait_for(b"one")
    followed.write(b"two\n", "e")
    followed.wait_for(b"one", b"two")
    assert followed.close()
    assert lines_of(followed.log) == [GONE, GONE]


def test_change_is_one_event_until_it_is_acknowledged(followed):
    followed.write(b"zero\n")
    followed.start()
    assert followed.event.wait(PATIENCE)
    for _ in range(20):
        followed.write(b"x\n")
        time.sleep(0.005)
    assert followed.events == 1
    followed.wait_for(b"zero", *[b"x"] * 20)


def test_follower_ends_after_the_job(followed):
    followed.final = False
    followed.write(b"one\n")
    followed.start()
    followed.wait_for(b"one")
    followed.write(b"last\n")
    followed.final = True
    followed.wait_for(b"one", b"last")
    assert followed.join()
    assert followed.follower.ended
    # The lines can be read until the log is closed.
    followed.wait_for(b"one", b"last")


def test_follower_waits_for_late_sizes(followed, monkeypatch):
    """A network file system reports new bytes some seconds late."""
    followed.write(b"one\n")
    known = {}
    stat, late = LogFile.stat, threading.Event()
    monkeypatch.setattr(
        LogFile, "stat", lambda file: stat(file) if late.is_set() else known.setdefault(file.path, stat(file))
    )
    monkeypatch.setattr(background, "MAX_WAIT_AFTER_END_S", NEVER)
    for path in followed.writer.folder.iterdir():
        LogFile(path).stat()
    followed.write(b"last\n")
    followed.final = True
    followed.start()
    followed.wait_for(b"one")
    assert not followed.join(2)
    late.set()
    assert followed.join()
    followed.wait_for(b"one", b"last")


def test_no_event_without_a_change(followed):
    followed.write(b"one\n")
    ends, asked = [], itertools.count()

    def changed():
        ends.append(followed.log.bounds().end)
        followed.follower.acknowledge()

    followed.follower = LogFollower(followed.log, changed, lambda: 1 in ends and next(asked) > 10)
    followed.follower.start()
    wait_until(lambda: ends, "the first page")
    followed.write(b"two\n")
    assert followed.join()
    # The first page, the change, and the end of the job.
    assert ends == [0, 1, 1]


@pytest.mark.parametrize(("step", "events"), [("open", 1), ("poll", 2)])
def test_fault_is_an_event_of_its_own(followed, monkeypatch, step, events):
    monkeypatch.setattr(followed.log, step, lambda: 1 / 0)
    followed.start()
    assert followed.join()
    assert followed.events == events
    assert "division" in followed.follower.failure


def test_polls_are_frequent_while_lines_come():
    assert poll_interval(0) <= 0.02 < poll_interval(5) <= 0.05 < poll_interval(30) <= 0.1 < poll_interval(100) <= 0.2
    for quiet in (2, 10, 60):
        assert poll_interval(quiet - 0.01) < poll_interval(quiet) == poll_interval(quiet * 2)


class Stream:
    """A stream that counts how often its reader is closed."""

    closed = 0

    def reader(self, *_):
        return self

    def close(self):
        self.closed += 1
        time.sleep(0.01)


def test_reader_is_closed_once_by_several_threads():
    stream = Stream()
    log = MergedLog([ReplicaLog("trainer", 0, spool=cast(Any, stream))])
    threads = [threading.Thread(target=log.close) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert stream.closed == 1


def test_closing_an_unstarted_follower_closes_its_log():
    stream = Stream()
    follower = LogFollower(MergedLog([ReplicaLog("trainer", 0, spool=cast(Any, stream))]), lambda: None)
    follower.close()
    assert stream.closed == 1
