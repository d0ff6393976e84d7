"""The plain view: what a pager gets, and what becomes of one that is missing, leaves early, or fails."""

import threading
import time

import pytest
from log_app import numbered, written
from log_writing import LogWriter
from support.waiting import PATIENCE

from torchx_tui.logs.lines.matches import Matches, Rule
from torchx_tui.logs.lines.merge import MergedLog
from torchx_tui.logs.pattern.pattern import parse_pattern
from torchx_tui.tui.logs.pager import pager_command, plain_lines, show_plain
from torchx_tui.tui.logs.text import LineForm


def script(folder, body, name="pager"):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return [str(path)]


def log_of(folder, count):
    return MergedLog([numbered(folder, count).log])


def test_pager_is_an_argument_list(tmp_path):
    script(tmp_path, "", "less")
    for environment, command in (
        ({"PAGER": "less -S '+/a b'"}, ["less", "-S", "+/a b"]),
        ({"PAGER": "cat; rm -rf x"}, ["cat;", "rm", "-rf", "x"]),
        ({"PATH": "/nowhere"}, []),
        # It goes to the end.
        ({"PATH": str(tmp_path)}, ["less", "-R", "+G"]),
    ):
        assert pager_command(environment) == command
    with pytest.raises(ValueError):
        pager_command({"PAGER": "less 'x"})


def test_pager_gets_safe_text(tmp_path):
    writer = LogWriter(tmp_path, 1)
    writer.write(b"\x1b]0;title\x07\x1b[31mred\x1b[0m\x1b[2J\n", at=1_700_000_001)
    lines = plain_lines(MergedLog([written(tmp_path, "zero\n").log, writer.log]), LineForm((0, 1)))
    assert show_plain(lines, script(tmp_path, f"cat > {tmp_path}/got")) == ""
    assert (tmp_path / "got").read_text() == "0| zero\n1| red\n"


def test_first_line_says_how_many_lines_there_are_at_most(tmp_path):
    lines = list(plain_lines(log_of(tmp_path, 5000), LineForm(), most=1000))
    assert lines[0] == "[the last 1,000 lines; to read all of them, save the log]"
    assert lines[1:] == [f"line {number}" for number in range(4000, 5000)]
    assert len(list(plain_lines(log_of(tmp_path / "other", 1000), LineForm(), most=1000))) == 1000


def test_pager_gets_what_filters_keep(tmp_path):
    kept = Matches(log_of(tmp_path, 1000), [Rule(parse_pattern("99"))])
    assert list(plain_lines(kept, LineForm()))[-2:] == ["line 998", "line 999"]


def test_pager_that_leaves_early_ends_the_view(tmp_path):
    lines = plain_lines(log_of(tmp_path, 200_000), LineForm())
    assert show_plain(lines, script(tmp_path, "head -n 1 > /dev/null")) == ""
    deadline = time.monotonic() + PATIENCE
    while any(thread.name == "log-pager" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_pager_that_is_missing_or_fails_is_one_sentence(tmp_path):
    failing = script(tmp_path, "cat > /dev/null; exit 3")
    for command, words in (
        (
            [f"{tmp_path}/none"],
            f"the pager {tmp_path}/none cannot be started: No such file or directory; set PAGER to another one",
        ),
        (failing, f"the pager {failing[0]} ended with exit code 3"),
        # A signal ends it when it has done its work.
        (script(tmp_path, "kill -INT $$", "killed"), ""),
    ):
        assert show_plain(iter(["x"]), command) == words
