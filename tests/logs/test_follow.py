import itertools
import threading
import time

import pytest
from log_writing import LogWriter
from support.waiting import NEVER, PATIENCE, wait_until

from torchx_tui.logs.source.log_file import LogFile
from torchx_tui.logs.view import background
from torchx_tui.logs.view.background import LogFollower, poll_interval
from torchx_tui.logs.view.merge import MergedLog


class Listener:
    """Counts what a follower tells, and waits for a state of its log."""

    def __init__(self, log, final=None):
        self.told = 0
        self.event = threading.Event()
        self.final = final
        self.follower = LogFollower(log, self.changed, None if final is None else lambda: bool(self.final))

    def changed(self):
        self.told += 1
        self.event.set()

    def wait_for_lines(self, count):
        deadline = time.monotonic() + PATIENCE
        log = self.follower.log
        while time.monotonic() < deadline:
            self.event.clear()
            self.follower.acknowledge()
            first, end, *_ = log.bounds()
            if end - first >= count:
                return [line.data for line in log.lines(first, count)]
            self.event.wait(1)
        raise AssertionError(f"not {count} lines: {log.bounds()}")


def test_lines_come_as_they_are_written(tmp_path):
    writer = LogWriter(tmp_path)
    listener = Listener(MergedLog([writer.log]))
    listener.follower.start()
    writer.write(b"one\n")
    assert listener.wait_for_lines(1) == [b"one"]
    writer.write(b"two\n", "e")
    assert listener.wait_for_lines(2) == [b"one", b"two"]
    listener.follower.close()
    assert listener.follower.join(PATIENCE)


def test_a_change_is_told_once_until_it_is_seen(tmp_path):
    writer = LogWriter(tmp_path)
    writer.write(b"zero\n")
    listener = Listener(MergedLog([writer.log]))
    listener.follower.start()
    assert listener.event.wait(PATIENCE)
    for _ in range(20):
        writer.write(b"x\n")
        time.sleep(0.005)
    assert listener.told == 1
    assert len(listener.wait_for_lines(21)) == 21
    listener.follower.close()


def test_closing_ends_the_thread_and_releases_the_files(tmp_path):
    writer = LogWriter(tmp_path)
    writer.write(b"one\n")
    log = MergedLog([writer.log])
    listener = Listener(log)
    listener.follower.start()
    listener.wait_for_lines(1)
    listener.follower.close()
    assert listener.follower.join(PATIENCE)
    assert [(line.data, line.omitted) for line in log.lines(-1, 1)] == [(b"[this line is no longer in the file]", 0)]


def test_it_ends_after_the_job_has_ended(tmp_path):
    writer = LogWriter(tmp_path)
    writer.write(b"one\n")
    listener = Listener(MergedLog([writer.log]), final=False)
    listener.follower.start()
    listener.wait_for_lines(1)
    writer.write(b"last\n")
    listener.final = True
    assert listener.wait_for_lines(2) == [b"one", b"last"]
    assert listener.follower.join(PATIENCE)
    assert listener.follower.ended
    # The lines can be read until the log is closed.
    assert listener.wait_for_lines(2) == [b"one", b"last"]
    listener.follower.close()
    assert listener.follower.log.lines(-2, 5)[0].data == b"[this line is no longer in the file]"


def test_it_does_not_end_before_a_size_that_is_told_late(tmp_path, monkeypatch):
    """A network file system tells of what was written last only some seconds later."""
    writer = LogWriter(tmp_path)
    writer.write(b"one\n")
    known = {}
    stat, late = LogFile.stat, threading.Event()

    def stat_late(file):
        return stat(file) if late.is_set() else known.setdefault(file.path, stat(file))

    monkeypatch.setattr(LogFile, "stat", stat_late)
    monkeypatch.setattr(background, "MAX_WAIT_AFTER_END_S", NEVER)
    listener = Listener(MergedLog([writer.log]), final=True)
    for path in filter(None, (writer.log.combined, writer.log.index, writer.log.stdout, writer.log.stderr)):
        LogFile(path).stat()
    writer.write(b"last\n")
    listener.follower.start()
    listener.wait_for_lines(1)
    assert not listener.follower.join(2)
    late.set()
    assert listener.follower.join(PATIENCE)
    assert listener.wait_for_lines(2) == [b"one", b"last"]
    listener.follower.close()


def test_nothing_is_told_while_nothing_changes(tmp_path):
    writer = LogWriter(tmp_path)
    writer.write(b"one\n")
    log = MergedLog([writer.log])
    told = []
    asked = itertools.count()

    def changed():
        told.append(log.bounds().end)
        follower.acknowledge()

    follower = LogFollower(log, changed, lambda: 1 in told and next(asked) > 10)
    follower.start()
    wait_until(lambda: told, "the first page")
    writer.write(b"two\n")
    assert follower.join(PATIENCE)
    # The first page, the change, and the end of the job.
    assert told == [0, 1, 1]
    follower.close()


def test_a_file_that_cannot_be_read_is_no_longer_than_it_was(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"abc")
    assert (LogFile(path).is_longer(2), LogFile(path).is_longer(3)) == (True, False)
    # The system refuses to read there.
    assert not LogFile(path).is_longer(2**63 - 1)
    assert not LogFile(tmp_path).is_longer(0)
    assert not LogFile(tmp_path / "none").is_longer(0)


@pytest.mark.parametrize(("step", "told"), [("open", 1), ("poll", 2)])
def test_a_fault_is_told_though_a_change_before_it_was_not_seen(tmp_path, monkeypatch, step, told):
    log = MergedLog([LogWriter(tmp_path).log])
    monkeypatch.setattr(log, step, lambda: 1 / 0)
    listener = Listener(log)
    listener.follower.start()
    assert listener.follower.join(PATIENCE)
    assert listener.told == told
    assert "division" in listener.follower.failure


def test_many_files_are_followed_in_order(tmp_path):
    writers = [LogWriter(tmp_path, replica) for replica in range(64)]
    for round_ in range(3):
        for number, writer in enumerate(writers):
            writer.write(b"%d %d\n" % (round_, number), at=1000 + round_)
    listener = Listener(MergedLog([writer.log for writer in writers]))
    listener.follower.start()
    want = [b"%d %d" % (round_, number) for round_ in range(3) for number in range(64)]
    assert listener.wait_for_lines(192) == want
    writers[40].write(b"live\n")
    assert listener.wait_for_lines(193)[-1] == b"live"
    listener.follower.close()


def test_looks_are_frequent_while_lines_come_and_rare_later():
    assert poll_interval(0) <= 0.02 < poll_interval(5) <= 0.05 < poll_interval(30) <= 0.1 < poll_interval(100) <= 0.2
    for quiet in (2, 10, 60):
        assert poll_interval(quiet - 0.01) < poll_interval(quiet) == poll_interval(quiet * 2)
