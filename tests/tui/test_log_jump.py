"""Going to lines, parts and times: what is understood of what is typed, and where it leads."""

import time

import pytest
from log_app import LogApp, logs_of
from log_writing import LogWriter

from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.tui.logs.jump import JumpError, Line, Moment, Share, Times, parse_jump


@pytest.fixture(autouse=True)
def berlin(zone):
    """Let the zone be one that is not UTC."""
    zone("Europe/Berlin")


def at(text):
    return time.mktime(time.strptime(text, "%Y-%m-%d %H:%M:%S"))


def day_and_night():
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
def test_place_is_understood(typed, expected):
    place = Moment(at(expected)) if isinstance(expected, str) else expected
    assert parse_jump(typed, day_and_night()) == place


def test_time_in_a_log_of_one_day_is_of_that_day():
    times = Times(at("2026-11-21 08:00:00"), at("2026-11-21 09:00:00"), at("2026-11-22 12:00:00"))
    assert parse_jump("23:10", times) == Moment(at("2026-11-21 23:10:00"))


@pytest.mark.parametrize("typed", ["", "x", "12:61", "25:00", "101%", "-10", "10m", "1h", "2026-13-01", "[/red]", "٣٤"])
def test_what_is_no_place_is_refused_with_examples(typed):
    with pytest.raises(JumpError, match=r"not a line number or a time: type 48112, 50%, 12:01:30, -10m, \+1h or 2026"):
        parse_jump(typed, day_and_night())


@pytest.fixture
def log(tmp_path):
    """Return a log of a thousand lines, one a second."""
    writer = LogWriter(tmp_path)
    for number in range(1000):
        writer.write(b"line %d\n" % (number + 1), at=at("2026-11-21 10:00:00") + number)
    return writer.log


async def test_lines_parts_and_times_lead_to_their_lines(log):
    async with logs_of(log, is_final=lambda: True, size=(100, 11), count=1000) as logs:
        for typed, number in (
            ("25%", 251), ("10:05", 301), ("10:05:30", 331), ("+10m", 601), ("-15m", 100), ("2026-11-21 10:01", 61),
            ("1", 1), ("500", 500),
        ):  # fmt: skip
            await logs.type(typed, "ctrl+g")
            await logs.first(f"line {number}")
            assert logs.status.state in ("paused", "ended")
        # That line is the one to be selected.
        await logs.press("v")
        await logs.to_be(selected=1)
        assert logs.view.selection.anchor == 499 - 1000
        await logs.press("v")
        # Beyond the end is the end.
        await logs.type("12:00", "ctrl+g")
        await logs.last("line 1000")
        # What is no place can be typed anew.
        await logs.type("soon", "ctrl+g")
        await logs.shows("not a line number or a time", on="words")
        assert logs.field.input.has_focus
        logs.field.input.value = "77"
        await logs.press("enter")
        await logs.first("line 77")
        await logs.until(lambda: not logs.field.display, "the field to go")
        # A search is shown again after a jump.
        await logs.press("G")
        await logs.type("99")
        await logs.shows("of 19", on="words")
        await logs.type("5", "ctrl+g")
        await logs.first("line 5")
        await logs.shows("19 found", on="words")
        assert logs.field.input.value == "99"
        await logs.press(
            "ctrl+g",
            "escape",
            until=lambda: logs.field.input.value == "99" and not logs.field.input.has_focus,
            what="the search",
        )
        assert logs.field.display


class HiddenLogApp(LogApp):
    """Its pane has no size yet. Textual calls the `on_mount` of `LogApp` as well."""

    def on_mount(self):
        self.pane.display = False


async def test_line_gone_to_before_anything_is_drawn_is_shown(log):
    async with logs_of(app=HiddenLogApp(log, is_final=lambda: True)) as logs:
        await logs.until(lambda: logs.view.bounds.complete and logs.view.bounds.end > logs.view.bounds.first)
        assert not logs.view.size
        logs.view.go_to(logs.view.bounds.first + 499)
        logs.pane.display = True
        await logs.first("line 500")


async def test_log_without_times_has_no_time_to_go_to(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"a\nb\n")
    async with logs_of(ReplicaLog("r", 0, stdout=path), size=(100, 11), count=2) as logs:
        await logs.type("10:00", "ctrl+g")
        await logs.shows("no line of this log has a time", on="words")
