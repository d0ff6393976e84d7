"""The text that commands print: widths, colours, columns and findings."""

from __future__ import annotations

import io
import os
import sys
from types import SimpleNamespace

import pytest
from support.command import Screen

from torchx_tui.backends.types import Finding
from torchx_tui.cli import doctor
from torchx_tui.cli.output import plain_lines, put_table, terminal_width


@pytest.mark.parametrize(("columns", "width"), [("60", 60), ("200", 200), ("0", 80), ("many", 80), ("", 80)])
def test_terminal_width_of_columns(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert terminal_width() == width


@pytest.mark.parametrize(("columns", "width"), [(90, 90), (0, 80)])
def test_terminal_width_of_a_terminal(monkeypatch, columns, width):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((columns, 24)))
    with open(os.devnull) as file:
        monkeypatch.setattr(sys, "stdout", file)
        assert terminal_width() == width


def test_findings_have_colours_on_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stdout", screen := Screen())
    monkeypatch.delenv("NO_COLOR", raising=False)
    for level in ("ok", "warning", "error"):
        doctor.print_finding(Finding(level, "it\x1b[2J is", "do\x07 this"))  # type: ignore[arg-type]
    monkeypatch.setenv("NO_COLOR", "1")
    doctor.print_finding(Finding("error", "what"))
    assert screen.getvalue() == (
        "  \x1b[32mok     \x1b[0m  it is\n           do this\n"
        "  \x1b[33mwarning\x1b[0m  it is\n           do this\n"
        "  \x1b[31merror  \x1b[0m  it is\n           do this\n"
        "  error    what\n"
    )


@pytest.mark.parametrize(("last", "code"), [("warning", 0), ("error", 1)])
def test_doctor_groups_findings_by_subject(command, monkeypatch, last, code):
    found = [("a", Finding("ok", "1")), ("a", Finding("ok", "2")), ("b", Finding(last, "3", "do"))]
    monkeypatch.setattr(
        doctor, "diagnose", lambda *_: (SimpleNamespace(subject=subject, finding=one) for subject, one in found)
    )
    ended = command("doctor")
    assert (ended.code, ended.out) == (code, f"a\n  ok       1\n  ok       2\nb\n  {last:<7}  3\n           do\n")
    ended = command("doctor", "--json")
    assert (ended.code, ended.data[-1]) == (code, {"subject": "b", "level": last, "what": "3", "hint": "do"})


@pytest.mark.parametrize(
    ("rows", "printed"),
    [
        (
            [("A", "LONG", "C"), ("one\ntwo", "x", ""), ("\x1b[31m", "y", "z")],
            "A        LONG  C\none two  x\n         y     z\n",
        ),
        ([], ""),
    ],
)
def test_table_has_columns(capsys, rows, printed):
    put_table(rows)
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    ("text", "shown"), [("a\nb\n", "a\nb"), ("a\x1b[2Jb\nc\n", "ab\nc"), ("é\tx\n", "é x"), ("", "")]
)
def test_plain_lines_have_no_control_characters(text, shown):
    assert plain_lines(text) == shown
