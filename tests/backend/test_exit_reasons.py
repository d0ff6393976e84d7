"""How a process ended, and why, in words."""

import pytest
from backend.tables import TABLES

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


@pytest.mark.parametrize(("code", "text", "name", "shells"), TABLES["exit_reasons"]["exits"])
def test_an_exit(code, text, name, shells):
    assert (format_exit(code), signal_name(code), signal_of(code)) == (text, name, shells)
    # The output of a process that a signal ended does not tell why.
    assert may_tell(code) is (0 < code <= 128)


def test_an_unknown_exit():
    assert (format_exit(None), signal_name(None), signal_of(None), may_tell(None)) == ("", "", "", False)


def test_the_first_failure_of_its_own_is_the_cause():
    lost, own = OutputError("lost", is_consequence=True), OutputError("bad")
    assert first_cause([(0, lost), (1, own), (2, own)]) == (1, own)
    assert first_cause([(0, lost), (1, lost)]) == (0, lost)
    assert first_cause([]) is None


@pytest.mark.parametrize(("error", "sentence"), TABLES["exit_reasons"]["sentences"])
def test_the_sentence_of_an_error(error, sentence):
    assert error_sentence(error) == sentence


def test_a_long_error_is_cut():
    assert [error_sentence("x" * length) for length in (300, 301)] == ["x" * 300, "x" * 299 + "…"]


@pytest.mark.parametrize(("seconds", "text"), TABLES["exit_reasons"]["times"])
def test_a_duration_in_its_largest_unit(seconds, text):
    assert short_time(seconds) == text


def test_a_cancelled_app():
    assert format_cancelled("", None) == "cancelled"
    assert format_cancelled("\x1b[31malice", 90) == "cancelled by alice after 1m"
    assert format_cancelled("", -5) == "cancelled after 0s"
    assert format_cancelled("alice", 90, ended=False) == "being cancelled by alice"


def test_some_of_many_names():
    texts = [some_of(""), some_of("abc"), some_of(iter("abcde")), some_of("abc", most=2)]
    assert texts == ["", "a, b, c", "a, b, c and 2 more", "a, b and 1 more"]
