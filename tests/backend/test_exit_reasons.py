"""How a process ended, and why, in words."""

from __future__ import annotations

import json

import pytest

from torchx_tui.backends.shared.exit_reasons import (
    error_sentence,
    format_cancelled,
    format_exit,
    last_traceback,
    short_time,
    signal_name,
    signal_of,
    some_of,
)
from torchx_tui.specs import NONE

TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
ValueError: bad
"""


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (None, ""),
        (0, "exit 0"),
        (1, "exit 1"),
        (128, "exit 128"),
        (129, "exit 129 (SIGHUP)"),
        (137, "exit 137 (SIGKILL)"),
        (255, "exit 255"),
        (-9, "killed by SIGKILL"),
        (-1, "killed by SIGHUP"),
        (-99, "killed by signal 99"),
    ],
)
def test_an_exit(code: int | None, words: str) -> None:
    assert format_exit(code) == words


@pytest.mark.parametrize(
    ("code", "name", "shells"),
    [
        (None, "", ""),
        (0, "", ""),
        (1, "", ""),
        (-15, "SIGTERM", ""),
        (-99, "signal 99", ""),
        (128, "", ""),
        (129, "", "SIGHUP"),
        (143, "", "SIGTERM"),
        (192, "", "SIGRTMAX"),
        (160, "", ""),  # 32 is a number that Linux keeps for itself
        (193, "", ""),
    ],
)
def test_the_signal_of_an_exit_code(code: int | None, name: str, shells: str) -> None:
    assert (signal_name(code), signal_of(code)) == (name, shells)


def test_the_traceback_that_tells_why() -> None:
    last = TRACEBACK.replace("bad", "worse")
    assert last_traceback(f"begins\n{TRACEBACK}goes on\n{last}ends\n") == last.rstrip("\n")
    assert last_traceback("no traceback\n") == ""


def test_of_a_launcher_only_the_workers_words_are_told() -> None:
    launcher = TRACEBACK.replace(
        "ValueError: bad", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
    )
    said = "[rank0]: python3: can't open file 'no.py'\n"
    assert last_traceback(said + launcher) == "python3: can't open file 'no.py'"
    assert last_traceback(launcher) == launcher.rstrip("\n")
    assert last_traceback(TRACEBACK + said + launcher) == TRACEBACK.rstrip("\n")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (NONE, ""),
        ("", ""),
        (" \n \n", ""),
        ("out of memory:\nmore of it", "out of memory"),
        ("\n\nfirst\nlast", "first"),
        (TRACEBACK, "ValueError: bad"),
        (json.dumps({"message": "it broke"}), "it broke"),
        (json.dumps({"message": {"message": "it broke", "errorCode": 1}}), "it broke"),
        (json.dumps({"message": TRACEBACK}), "ValueError: bad"),
        ('{"mess', ""),
        ('{"other": 1}', ""),
        ("[1]", "[1]"),
        ("x" * 300, "x" * 300),
        ("x" * 301, "x" * 299 + "…"),
        ("red \x1b[31mtext\x1b[0m", "red text"),
    ],
)
def test_the_line_that_says_most_of_an_error(error: str, sentence: str) -> None:
    assert error_sentence(error) == sentence


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h"),
        (7199, "1h"),
        (86399, "23h"),
        (86400, "1d"),
        (200_000, "2d"),
    ],
)
def test_a_duration_in_its_largest_unit(seconds: float, text: str) -> None:
    assert short_time(seconds) == text


def test_a_cancelled_app() -> None:
    assert format_cancelled("", None) == "cancelled"
    assert format_cancelled("alice", 90) == "cancelled by alice after 1m"
    assert format_cancelled("", -5) == "cancelled after 0s"
    assert format_cancelled("alice", 90, ended=False) == "being cancelled by alice"
    assert format_cancelled("\x1b[31malice", None) == "cancelled by alice"


def test_some_of_many_names() -> None:
    assert some_of([]) == ""
    assert some_of(["a", "b", "c"]) == "a, b, c"
    assert some_of(iter("abcde")) == "a, b, c and 2 more"
    assert some_of("abc", most=2) == "a, b and 1 more"
