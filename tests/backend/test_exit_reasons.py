"""How a process ended, and why, in words."""

import json

import pytest

from torchx_tui.backends.shared.exit_reasons import (
    error_sentence,
    first_cause,
    format_cancelled,
    format_exit,
    may_tell,
    short_time,
    signal_name,
    signal_of,
    some_of,
)
from torchx_tui.logs.pattern.error_reader import OutputError
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
def test_an_exit(code, words):
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
def test_the_signal_of_an_exit_code(code, name, shells):
    assert (signal_name(code), signal_of(code)) == (name, shells)


def test_first_replica_that_failed_by_itself_is_the_cause():
    lost, own = OutputError("lost", is_consequence=True), OutputError("bad")
    assert first_cause([(0, lost), (1, own), (2, own)]) == (1, own)
    assert first_cause([(0, lost), (1, lost)]) == (0, lost)
    assert first_cause([]) is None


@pytest.mark.parametrize(
    ("code", "tells"), [(None, False), (0, False), (1, True), (128, True), (137, False), (-9, False)]
)
def test_the_output_of_a_process_that_a_signal_ended_tells_nothing(code, tells):
    assert may_tell(code) == tells


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
def test_the_line_that_says_most_of_an_error(error, sentence):
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
def test_a_duration_in_its_largest_unit(seconds, text):
    assert short_time(seconds) == text


def test_a_cancelled_app():
    assert format_cancelled("", None) == "cancelled"
    assert format_cancelled("alice", 90) == "cancelled by alice after 1m"
    assert format_cancelled("", -5) == "cancelled after 0s"
    assert format_cancelled("alice", 90, ended=False) == "being cancelled by alice"
    assert format_cancelled("\x1b[31malice", None) == "cancelled by alice"


def test_some_of_many_names():
    assert some_of([]) == ""
    assert some_of(["a", "b", "c"]) == "a, b, c"
    assert some_of(iter("abcde")) == "a, b, c and 2 more"
    assert some_of("abc", most=2) == "a, b and 1 more"
