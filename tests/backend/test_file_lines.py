"""The lines of a replica whose log is files of this machine: which of them, in which order, and until when."""

from __future__ import annotations

import os
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.waiting import wait_until

from torchx_tui.backends.shared.file_lines import FileLines
from torchx_tui.backends.types import LogQuery
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.specs.errors import SchedulerError

LINES = ["one\n", "two\n", "three\n"]


@dataclass
class Writer:
    """A replica that writes into one file."""

    path: Path
    over: bool = False
    supervised: bool = True
    looks: int = 0
    late: bytes = b""

    def write(self, data):
        with self.path.open("ab") as file:
            file.write(data)

    def look(self):
        """Tell how the app is doing, before each reading; write what comes late once there was nothing to read."""
        self.looks += 1
        if self.looks == 5 and self.late:
            self.write(self.late)
        return self

    def lines(self, stdout=None, **query):
        log = ReplicaLog("worker", 0, combined=self.path, stdout=stdout)
        return FileLines(log, LogQuery("app", "worker", **query), self.look)


@pytest.fixture
def writer(tmp_path):
    made = Writer(tmp_path / "combined.log")
    made.write(b"one\ntwo\nthree\n")
    yield made
    made.over = True


def test_lines_are_found_by_number(writer):
    writer.write(b"t\xff\xfe\n")
    lines = writer.lines()
    assert [lines[1], next(lines), lines[0], next(lines), lines[3]] == [*LINES[1:], *LINES[:2], "t\ufffd\ufffd\n"]
    assert writer.lines(pattern=re.compile("t"))[1] == "three\n"
    with pytest.raises(IndexError, match="line 4: there are 4"):
        lines[4]
    with pytest.raises(IndexError, match="counted from 0"):
        lines[-1]


def test_lines_are_followed_until_the_app_ends(writer):
    lines = writer.lines(follow=True)
    assert [next(lines) for _ in range(3)] == LINES
    writer.write(b"four\nfi")
    assert next(lines) == "four\n"
    writer.write(b"ve")
    writer.over = True
    assert list(lines) == ["five"]


def test_lines_are_followed_up_to_a_time(writer):
    writer.late = b"four\n"
    lines = writer.lines(follow=True, until=time.time() + 3600)
    assert [next(lines) for _ in range(4)] == [*LINES, "four\n"]
    lines.close()
    assert list(lines) == []
    # A time in the past is not waited for.
    assert list(writer.lines(follow=True, until=time.time() - 60)) == []


def test_a_quiet_log_is_read_less_often(writer, monkeypatch):
    times, now = iter([1.5, 2.0, 29.5, 30.0, 1e6, 1e6 + 1.5]), 0.0
    waits = []

    class Passing(threading.Event):
        """Lets time pass at once."""

        def wait(self, timeout=None):
            nonlocal now
            waits.append((now, timeout))
            now = next(times, 0.0)
            writer.over = not now
            if now == 1e6:
                writer.write(b"four\n")
            return self.is_set()

    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(threading, "Event", Passing)
    assert list(writer.lines(follow=True))[-1] == "four\n"
    assert waits == [
        (0.0, 0.02), (1.5, 0.02), (2.0, 0.05), (29.5, 0.05), (30.0, 0.2), (1e6, 0.02), (1e6 + 1.5, 0.02),
    ]  # fmt: skip


def test_a_line_may_be_a_second_late(writer, monkeypatch):
    writer.path.with_suffix(".index").write_text("0 900.000 o\n")
    until, now = 1000.0, 1000.5
    monkeypatch.setattr(time, "time", lambda: now)
    writer.late = b"four\n"
    lines = writer.lines(follow=True, until=until)
    assert [next(lines) for _ in range(4)] == [*LINES, "four\n"]
    now = 1001.5
    assert list(lines) == []


@pytest.mark.parametrize(
    ("query", "numbers"),
    [({"since": 1000.0}, [1, 2]), ({"until": 1000.0}, [0, 1]), ({"since": 950.0, "until": 1050.0}, [1])],
)
def test_lines_of_a_time_range(writer, query, numbers):
    assert list(writer.lines(since=time.time() + 3600)) == []
    writer.path.with_suffix(".index").write_text("0 900.000 o\n4 1000.000 o\n8 1100.000 o\n")
    assert list(writer.lines(**query)) == [LINES[number] for number in numbers]


@pytest.mark.parametrize(("over", "supervised"), [(True, True), (False, False)])
def test_missing_lines_are_read_from_the_outputs(writer, tmp_path, over, supervised):
    writer.path.with_suffix(".index").write_text("0 900.000 o\n")
    (tmp_path / "stdout.log").write_bytes(b"one\ntwo\nthree\nfour\n")
    writer.over, writer.supervised = over, supervised
    lines = writer.lines(stdout=tmp_path / "stdout.log", follow=True)
    assert [next(lines) for _ in range(4)] == [*LINES, "four\n"]
    lines.close()


def test_files_are_read_once_and_left_closed(writer):
    def opened():
        folder = Path("/proc/self/fd")
        return sum(os.path.realpath(folder / name) == str(writer.path) for name in os.listdir(folder))

    lines = writer.lines()
    assert lines[0] == "one\n"
    count = opened()
    # Only a line before the last one read is read again.
    writer.path.write_bytes(b"ONE\nTWO\nTHREE\n")
    assert (lines[1], lines[2]) == ("two\n", "three\n")
    assert lines[0] == "ONE\n"
    assert opened() == count > 0
    assert list(lines) == ["TWO\n", "THREE\n"]
    assert opened() == 0


def test_a_removed_log_is_named(writer):
    lines = writer.lines(follow=True)
    assert next(lines) == "one\n"
    assert lines[2] == "three\n"
    writer.path.unlink()
    with pytest.raises(SchedulerError, match=rf"the log was removed: {writer.path}"):
        wait_until(lambda: next(lines) and False, "it is noticed")
