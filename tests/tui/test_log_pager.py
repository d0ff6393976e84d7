"""The plain view: what a pager gets, and what becomes of one that is missing, leaves early, or fails."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from log_writing import LogWriter
from support.waiting import PATIENCE

from torchx_tui.logs.pattern.pattern import parse_pattern
from torchx_tui.logs.view.filtering import FilteredLog, Rule
from torchx_tui.logs.view.merge import MergedLog
from torchx_tui.tui.logs.pager import pager_command, plain_lines, show_plain
from torchx_tui.tui.logs.text import LineForm


def script(folder: Path, body: str) -> list[str]:
    path = folder / "pager"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return [str(path)]


def log_of(folder: Path, count: int) -> MergedLog:
    writer = LogWriter(folder)
    writer.write(b"".join(b"line %d\n" % number for number in range(count)))
    return MergedLog([writer.log])


def test_the_pager_is_an_argument_list() -> None:
    assert pager_command({"PAGER": "less -S '+/a b'"}) == ["less", "-S", "+/a b"]
    assert pager_command({"PAGER": "cat; rm -rf x"}) == ["cat;", "rm", "-rf", "x"]
    assert pager_command({"PATH": "/nowhere"}) == []
    with pytest.raises(ValueError):
        pager_command({"PAGER": "less 'x"})


def test_less_goes_to_the_end(tmp_path: Path) -> None:
    script(tmp_path, "").append("")
    (tmp_path / "pager").rename(tmp_path / "less")
    assert pager_command({"PATH": str(tmp_path)}) == ["less", "-R", "+G"]


def test_it_gets_safe_text(tmp_path: Path) -> None:
    writers = [LogWriter(tmp_path, k) for k in range(2)]
    writers[0].write(b"zero\n", at=1000)
    writers[1].write(b"\x1b]0;title\x07\x1b[31mred\x1b[0m\x1b[2J\n", at=2000)
    lines = plain_lines(MergedLog([writer.log for writer in writers]), LineForm((0, 1)))
    assert show_plain(lines, script(tmp_path, f"cat > {tmp_path}/got")) == ""
    assert (tmp_path / "got").read_text() == "0| zero\n1| red\n"


def test_a_cap_is_said_in_the_first_line(tmp_path: Path) -> None:
    lines = list(plain_lines(log_of(tmp_path, 5000), LineForm(), most=1000))
    assert lines[0] == "[the last 1,000 lines; S in torchx-tui saves all of them]"
    assert lines[1:] == [f"line {number}" for number in range(4000, 5000)]
    assert len(list(plain_lines(log_of(tmp_path / "other", 1000), LineForm(), most=1000))) == 1000


def test_filters_hold(tmp_path: Path) -> None:
    kept = FilteredLog(log_of(tmp_path, 1000), [Rule(parse_pattern("99"))])
    assert list(plain_lines(kept, LineForm()))[-2:] == ["line 998", "line 999"]


def test_a_pager_that_leaves_early_ends_the_view(tmp_path: Path) -> None:
    lines = plain_lines(log_of(tmp_path, 200_000), LineForm())
    assert show_plain(lines, script(tmp_path, "head -n 1 > /dev/null")) == ""
    deadline = time.monotonic() + PATIENCE
    while any(thread.name == "log-pager" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_pager_that_is_missing_or_fails_is_one_sentence(tmp_path: Path) -> None:
    missing = show_plain(iter(["x"]), [str(tmp_path / "none")])
    assert (
        missing == f"the pager {tmp_path}/none cannot be started: No such file or directory; set PAGER to another one"
    )
    command = script(tmp_path, "cat > /dev/null; exit 3")
    assert show_plain(iter(["x"]), command) == f"the pager {command[0]} ended with exit code 3"


def test_a_pager_that_a_signal_ended_has_done_its_work(tmp_path: Path) -> None:
    assert show_plain(iter(["x"]), script(tmp_path, "kill -INT $$")) == ""
