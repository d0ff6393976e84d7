"""The lines of a replica whose log is files of this machine: which of them, in which order, and until when."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.waiting import wait_until

from torchx_tui.backends.shared.file_lines import FileLines
from torchx_tui.backends.types import LogQuery
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.specs import SchedulerError


@dataclass
class Writer:
    """A replica that writes into one file."""

    path: Path
    over: bool = False
    supervised: bool = True
    looks: int = 0
    late: bytes = b""

    def write(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def look(self) -> Writer:
        """Tell how the app is doing, before each reading; write what comes late once there was nothing to read."""
        self.looks += 1
        if self.looks == 5 and self.late:
            self.write(self.late)
        return self

    def lines(self, **query: Any) -> FileLines:
        log = ReplicaLog("worker", 0, combined=self.path)
        return FileLines(log, LogQuery("app", "worker", **query), self.look)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(tmp_path / "combined.log")
    made.write(b"one\ntwo\nthree\n")
    yield made
    made.over = True


def test_lines_are_found_by_number_forwards_and_backwards(writer: Writer) -> None:
    lines = writer.lines()
    assert (lines[1], next(lines), lines[0], next(lines)) == ("two\n", "three\n", "one\n", "two\n")
    with pytest.raises(IndexError, match="line 3: there are 3"):
        lines[3]
    with pytest.raises(IndexError, match="counted from 0"):
        lines[-1]


def test_only_lines_with_a_pattern_count(writer: Writer) -> None:
    assert writer.lines(pattern=re.compile("t"))[1] == "three\n"


def test_what_is_no_text_is_shown_as_such(writer: Writer) -> None:
    writer.write(b"\xff\xfe\n")
    assert list(writer.lines())[-1] == "\ufffd\ufffd\n"


def test_lines_come_as_they_are_written_until_the_app_is_over(writer: Writer) -> None:
    lines = writer.lines(follow=True)
    assert [next(lines) for _ in range(3)] == ["one\n", "two\n", "three\n"]
    writer.write(b"four\nfi")
    assert next(lines) == "four\n"
    writer.write(b"ve")
    writer.over = True
    assert list(lines) == ["five"]


def test_lines_are_followed_up_to_a_time(writer: Writer) -> None:
    writer.late = b"four\n"
    lines = writer.lines(follow=True, until=time.time() + 3600)
    assert [next(lines) for _ in range(4)] == ["one\n", "two\n", "three\n", "four\n"]
    lines.close()
    assert list(lines) == []
    # Once the time has passed nothing counts, nor is it waited for.
    assert list(writer.lines(follow=True, until=time.time() - 60)) == []


def test_a_log_that_is_removed_meanwhile_is_named(writer: Writer) -> None:
    lines = writer.lines(follow=True)
    assert next(lines) == "one\n"
    assert lines[2] == "three\n"
    writer.path.unlink()
    with pytest.raises(SchedulerError, match=rf"the log was removed: {writer.path}"):
        wait_until(lambda: next(lines) and False, "it is noticed")
