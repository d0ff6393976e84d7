"""Words and figures: ages, durations, names cut to a width."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from torchx_tui.specs.status import AppState
from torchx_tui.tui.format import age, bytes_words, clock, cut, duration, fit_name, same_digits, split_name
from torchx_tui.tui.job_alerts import format_exit as format_exit
from torchx_tui.tui.rows import JobRow
from torchx_tui.tui.terminal.title import has_title, title_text


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "<1m"), (59, "<1m"), (60, "1m"), (3599, "59m"), (3600, "1h"), (86399, "23h"), (13 * 86400, "13d")],
)
def test_age(seconds, shown):
    assert age(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(3, "3s"), (112, "1m 52s"), (2469, "41m 09s"), (7620, "2h 07m"), (273600, "3d 04h")]
)
def test_duration(seconds, shown):
    assert duration(seconds) == shown


def test_clock_names_the_day_when_it_is_another(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    now = 1795258732.0
    assert len(clock(now - 60, now)) == 8
    assert clock(now - 3 * 86400, now).startswith("2026-11-18 ")


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (999, "999 B"),
        (1000, "1.0 KB"),
        (999_499, "999 KB"),
        (999_500, "1.0 MB"),
        (2_345_678, "2.3 MB"),
        (10**9, "1.0 GB"),
    ],
)
def test_bytes_never_read_1000_of_a_unit(size, shown):
    assert bytes_words(size) == shown


def test_split_name():
    assert split_name("llama3-8b-sft-zq2wmx7v5hkdfd") == ("llama3-8b-sft", "zq2wmx7v5hkdfd")
    assert split_name("plain-name") == ("plain-name", "")


def test_fit_name_shortens_the_suffix_first():
    app_id = "llama3-8b-sft-zq2wmx7v5hkdfd"
    assert fit_name(app_id, 40, "…") == ("llama3-8b-sft", "-zq2wmx7v5hkdfd")
    assert fit_name(app_id, 24, "…") == ("llama3-8b-sft", "-…kdfd")
    assert fit_name(app_id, 14, "…") == ("llama3-8b", "…kdfd")


@given(st.text(min_size=1, max_size=60), st.integers(1, 40))
def test_fits_always(text, width):
    name, suffix = fit_name(text, width, "…")
    assert cell_len(name + suffix) <= width
    assert cell_len(cut(text, width, "…")) <= width


def ended(name: str, state: AppState) -> JobRow:
    return JobRow(f"local_cwd://torchx/{name}", "local_cwd", name, state)


def test_jobs_that_ended_are_named_and_many_are_counted():
    few = [ended("a", AppState.SUCCEEDED), ended("b", AppState.FAILED)]
    assert format_exit(few) == [("a succeeded", False), ("b failed", True)]
    many = [ended(str(number), AppState.SUCCEEDED) for number in range(1200)] + few
    assert format_exit(many) == [("1,202 jobs ended: 1,201 succeeded, 1 failed", True)]
    assert format_exit(many[:1200]) == [("1,200 jobs succeeded", False)]


def test_the_terminals_title():
    assert title_text({}) == "torchx-tui"
    counts = {AppState.RUNNING: 3, AppState.FAILED: 1, AppState.SUCCEEDED: 7, AppState.PENDING: 0}
    assert title_text(counts) == "torchx-tui 3 running 1 failed"
    assert has_title({"TERM": "xterm-256color"})
    assert not has_title({"TERM": "linux"})
    assert not has_title({})


def test_numbers_of_a_column_have_the_same_digits():
    column = ["0.25", "-3", "", "nan", "0.2727", "1e-5"]
    assert same_digits(column) == ["0.2500", "-3.0000", "", "nan", "0.2727", "1e-5"]
    assert same_digits(["12", "3"]) == ["12", "3"]
