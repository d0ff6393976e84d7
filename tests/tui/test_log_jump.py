"""Going to lines, parts and times: what is understood of what is typed, and where it leads."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from log_app import LogApp
from log_writing import LogWriter
from textual.pilot import Pilot

from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.tui.logs.jump import JumpError, Line, Moment, Share, Times, parse_jump
from torchx_tui.tui.logs.search_row import SearchRow


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch):
    """A zone that is not UTC."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(text: str) -> float:
    return time.mktime(time.strptime(text, "%Y-%m-%d %H:%M:%S"))


def day_and_night() -> Times:
    last = at("2026-11-21 10:45:32")
    return Times(at("2026-11-20 22:00:00"), last, last)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("48112", Line(48112)), ("48,112", Line(48112)), (" 7 ", Line(7)), ("0", Line(1)),
        ("50%", Share(0.5)), ("0 %", Share(0)), ("99.5%", Share(0.995)),
        ("10:01", "2026-11-21 10:01:00"), ("9:01:30", "2026-11-21 09:01:30"),
        # The log holds no 23:10 of its last day.
        ("23:10", "2026-11-20 23:10:00"),
        ("-10m", "2026-11-21 10:35:32"), ("-1h30m", "2026-11-21 09:15:32"), ("- 2 d", "2026-11-19 10:45:32"),
        ("+1h", "2026-11-20 23:00:00"), ("+1.0s", "2026-11-20 22:00:01"),
        ("2026-11-21 10:45", "2026-11-21 10:45:00"), ("2026-11-21", "2026-11-21 00:00:00"),
        ("2026-11-21T09:45:00Z", "2026-11-21 10:45:00"), ("2026-11-21T11:45:00+02:00", "2026-11-21 10:45:00"),
    ],
)  # fmt: skip
def test_what_is_typed_is_understood(typed: str, expected: Line | Share | str) -> None:
    place = Moment(at(expected)) if isinstance(expected, str) else expected
    assert parse_jump(typed, day_and_night()) == place


def test_a_time_of_a_log_of_one_day_is_of_that_day() -> None:
    times = Times(at("2026-11-21 08:00:00"), at("2026-11-21 09:00:00"), at("2026-11-22 12:00:00"))
    assert parse_jump("23:10", times) == Moment(at("2026-11-21 23:10:00"))


@pytest.mark.parametrize("typed", ["", "x", "12:61", "25:00", "101%", "-10", "10m", "1h", "2026-13-01", "[/red]", "٣٤"])
def test_what_is_no_place_is_said_with_examples(typed: str) -> None:
    with pytest.raises(JumpError, match=r"not a line number or a time: type 48112, 50%, 12:01:30, -10m, \+1h or 2026"):
        parse_jump(typed, day_and_night())


def thousand_lines(folder: Path) -> ReplicaLog:
    """A thousand lines, one a second."""
    writer = LogWriter(folder)
    for number in range(1000):
        writer.write(b"line %d\n" % (number + 1), at=at("2026-11-21 10:00:00") + number)
    return writer.log


@pytest.fixture
def app(tmp_path: Path) -> LogApp:
    return LogApp([thousand_lines(tmp_path)], lambda: True)


async def jump(pilot: Pilot, app: LogApp, typed: str) -> None:
    row = app.query_one(SearchRow)
    await pilot.press("ctrl+g")
    await app.until(lambda: row.input.has_focus and row.mode == "jump")
    row.input.value = typed
    await pilot.press("enter")


async def test_lines_parts_and_times_lead_to_their_lines(app: LogApp) -> None:
    async with app.run_test(size=(60, 11)) as pilot:
        await app.until(lambda: app.pane.status.state == "ended" and app.pane.status.line_count == 1000)
        for typed, number in (
            ("500", 500), ("25%", 251), ("10:05", 301), ("10:05:30", 331), ("+10m", 601), ("-15m", 100),
            ("2026-11-21 10:01", 61), ("1", 1),
        ):  # fmt: skip
            await jump(pilot, app, typed)
            await app.until(lambda number=number: app.rows()[:1] == [f" │ line {number}"])
            assert app.pane.status.state in ("paused", "ended")
        # Beyond the end is the end.
        await jump(pilot, app, "12:00")
        await app.until(lambda: app.rows()[-1:] == [" │ line 1000"])


class HiddenLogApp(LogApp):
    """Its pane has no size yet. Textual calls the `on_mount` of `LogApp` as well."""

    def on_mount(self) -> None:
        self.pane.display = False


async def test_a_line_that_was_gone_to_before_anything_is_drawn_is_shown(tmp_path: Path) -> None:
    app = HiddenLogApp([thousand_lines(tmp_path)], lambda: True)
    async with app.run_test(size=(60, 11)):
        await app.until(lambda: app.view.bounds.complete and app.view.bounds.end > app.view.bounds.first)
        assert not app.view.size
        app.view.go_to(app.view.bounds.first + 499)
        app.pane.display = True
        await app.until(lambda: app.rows()[:1] == [" │ line 500"])


async def test_the_line_gone_to_is_copied_and_selected_first(app: LogApp) -> None:
    async with app.run_test(size=(60, 11)) as pilot:
        await app.until(lambda: app.pane.status.exact and app.pane.status.line_count == 1000)
        await jump(pilot, app, "500")
        await app.until(lambda: app.rows()[:1] == [" │ line 500"])
        await pilot.press("v")
        await app.until(lambda: app.pane.status.selected == 1)
        assert app.view.selection is not None
        assert app.view.selection.anchor == 499 - 1000


async def test_a_bad_place_is_said_and_can_be_typed_again(app: LogApp) -> None:
    async with app.run_test(size=(100, 11)) as pilot:
        row = app.query_one(SearchRow)
        await app.until(lambda: app.pane.status.exact and app.pane.status.line_count == 1000)
        await jump(pilot, app, "soon")
        await app.until(lambda: "not a line number or a time" in app.search_words())
        assert row.input.has_focus
        row.input.value = "77"
        await pilot.press("enter")
        await app.until(lambda: app.rows()[0].endswith("line 77"))
        await app.until(lambda: not row.display)


async def test_a_search_is_shown_again_after_a_jump(app: LogApp) -> None:
    async with app.run_test(size=(100, 11)) as pilot:
        row = app.query_one(SearchRow)
        await app.until(lambda: app.pane.status.exact and app.pane.status.line_count == 1000)
        await pilot.press("slash", *"99", "enter")
        await app.until(lambda: "of 19" in app.search_words())
        await jump(pilot, app, "5")
        await app.until(lambda: app.rows()[0].endswith("line 5"))
        await app.until(lambda: row.input.value == "99" and "19 found" in app.search_words())
        await pilot.press("ctrl+g", "escape")
        await app.until(lambda: row.input.value == "99" and not row.input.has_focus)
        assert row.display


async def test_a_log_without_times_says_so(tmp_path: Path) -> None:
    from torchx_tui.logs.source.replica_log import ReplicaLog

    path = tmp_path / "out"
    path.write_bytes(b"a\nb\n")
    app = LogApp([ReplicaLog("r", 0, stdout=path)])
    async with app.run_test(size=(100, 11)) as pilot:
        await app.until(lambda: app.pane.status.exact and len(app.rows()) == 2)
        await jump(pilot, app, "10:00")
        await app.until(lambda: "no line of this log has a time" in app.search_words())
