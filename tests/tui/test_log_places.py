"""Where the pane stands: the last error of a log, times since the start, how far back it goes, what was dropped."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from log_app import LogApp
from log_writing import LogWriter
from textual.geometry import Size

from torchx_tui.logs.view.merge import MergedLog
from torchx_tui.tui.logs import reading
from torchx_tui.tui.logs.pane import LogPane
from torchx_tui.tui.logs.rows import relative_text
from torchx_tui.tui.logs.search_row import kind_words
from torchx_tui.tui.logs.status import LogStatus, StatusRow

SIZE = (60, 11)


def numbered(folder: Path, count: int, replica: int = 0, word: str = "line") -> LogWriter:
    writer = LogWriter(folder, replica)
    writer.write(b"".join(b"%s %d\n" % (word.encode(), number) for number in range(count)))
    return writer


class ErrorApp(LogApp):
    """Asks for the last error as soon as it shows the logs."""

    replica: int | None = None
    said: list[str]

    def show(self) -> None:
        self.said = []
        super().show()
        if self.replica is not None:
            self.pane.select_replica(self.replica)
        self.pane.show_cause()

    def on_log_pane_said(self, message: LogPane.Said) -> None:
        self.said.append(message.text)


@pytest.mark.parametrize("replica", [None, 1])
async def test_what_the_log_ended_of_is_shown_once_it_is_read(tmp_path: Path, replica: int | None) -> None:
    writers = [numbered(tmp_path, 500, k) for k in range(2)]
    for writer in writers:
        writer.write(b"ERROR first\n" + b"between\n" * 50 + b"ERROR last\n" + b"after\n" * 3000)
    app = ErrorApp([writer.log for writer in writers], is_final=lambda: True)
    app.replica = replica
    async with app.run_test(size=SIZE):
        await app.until(lambda: any("ERROR last" in row for row in app.rows()))
        await app.until(lambda: app.pane.status.state == "ended" and app.pane.status.exact)
        assert app.pane.status.replica == replica
        assert not app.search.travel.under_way
        assert app.said == []


async def test_without_an_error_it_stays_at_the_end_and_says_nothing(tmp_path: Path) -> None:
    app = ErrorApp([numbered(tmp_path, 5000).log], is_final=lambda: True)
    async with app.run_test(size=SIZE):
        await app.until(lambda: app.rows()[-1:] == [" │ line 4999"] and app.pane.status.exact)
        await app.until(lambda: not app.search.travel.under_way)
        await app.until(lambda: app.pane.status.state == "ended")
        assert app.said == []


async def test_an_error_that_comes_late_does_not_move_what_a_person_has_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = LogWriter(tmp_path)
    writer.write(b"ERROR early\n" + b"".join(b"line %d\n" % number for number in range(5000)))
    held = True
    read_older = MergedLog.read_older

    def slow(log: MergedLog, seconds: float, lines: float = 1e9) -> bool:
        if log.bounds().end - log.bounds().first > 0 and held:
            time.sleep(0.01)
            return True
        return read_older(log, seconds, min(lines, 100))

    monkeypatch.setattr(MergedLog, "read_older", slow)
    monkeypatch.setattr("torchx_tui.logs.source.file_source.BLOCK", 4096)
    monkeypatch.setattr("torchx_tui.logs.source.file_source.FIRST_READ", 512)
    app = ErrorApp([writer.log], is_final=lambda: True)
    async with app.run_test(size=SIZE) as pilot:
        await app.until(lambda: app.rows()[-1:] == [" │ line 4999"])
        assert app.search.travel.under_way
        await pilot.press("k")
        held = False
        await app.until(lambda: app.pane.status.exact and app.pane.status.line_count == 5001)
        await pilot.pause(0.1)
        assert app.rows()[-1] == " │ line 4998"


async def test_errors_are_what_the_pane_is_told(tmp_path: Path) -> None:
    writer = numbered(tmp_path, 100)
    writer.write(b"ERROR one\nXid 79\nlast\n" + b"x\n" * 100)

    class OwnErrors(LogApp):
        def compose(self):
            pane = LogPane()
            pane.set_error_patterns([r"Xid \d+"])
            yield pane

    app = OwnErrors([writer.log])
    async with app.run_test(size=SIZE) as pilot:
        await app.until(lambda: app.pane.status.exact and app.pane.status.line_count == 203)
        await pilot.press("E")
        await app.until(lambda: any("Xid 79" in row for row in app.rows()))


async def test_each_replica_is_found_again_where_it_was_left(tmp_path: Path) -> None:
    writers = [numbered(tmp_path, 200, k, f"r{k}") for k in range(2)]
    app = LogApp([writer.log for writer in writers])
    async with app.run_test(size=SIZE) as pilot:
        await app.until(lambda: app.pane.status.exact and app.pane.status.line_count == 400)
        await pilot.press("1")
        await app.until(lambda: app.rows()[-1:] == [" │ r1 199"] and app.pane.status.exact)
        await pilot.press("pageup", "pageup")
        await app.until(lambda: app.rows()[-1:] == [" │ r1 181"])
        before = app.rows()
        await pilot.press("0")
        await app.until(lambda: app.rows()[-1:] == [" │ r0 199"])
        assert app.pane.status.state == "following"
        writers[1].write(b"later\n" * 30)
        await pilot.press("1")
        await app.until(lambda: app.rows() == before)
        assert app.pane.status.state == "paused"
        await pilot.press("o", "o", "o")
        await app.until(lambda: app.rows() == before)


async def test_following_keeps_the_columns_that_were_scrolled_to(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    writer.write(b"".join(b"%04d" % number * 40 + b"\n" for number in range(50)))
    app = LogApp([writer.log])
    async with app.run_test(size=SIZE) as pilot:
        await app.until(lambda: len(app.rows()) == 10)
        await pilot.press("right", "right")
        shifted = app.rows()
        assert shifted[-1].startswith(" │ 00490049")
        writer.write(b"abcd" * 40 + b"\n")
        await app.until(lambda: app.rows()[-1].startswith(" │ abcd"))
        assert len(app.rows()[-1]) == len(shifted[-1])
        await pilot.press("k", "f", "g", "G")
        await app.until(lambda: app.rows()[-1].startswith(" │ abcd"))
        assert app.view._offset == 16


async def test_times_are_off_of_the_day_with_milliseconds_and_since_the_start(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    for seconds in (0, 5, 3723, 36_000, 360_000):
        writer.write(b"x\n", at=1_700_000_000.25 + seconds)
    app = LogApp([writer.log])
    async with app.run_test(size=SIZE) as pilot:
        await app.until(lambda: len(app.rows()) == 5)
        assert app.rows()[0] == " │ x"
        await pilot.press("t")
        await app.until(lambda: len(app.rows()[0].partition("│")[0]) == 10)
        await pilot.press("t")
        await app.until(lambda: ".250 │" in app.rows()[0])
        await pilot.press("t")
        await app.until(lambda: "+" in app.rows()[0])
        assert [row.partition("│")[0] for row in app.rows()] == [
            "   +0:00:00 ", "   +0:00:05 ", "   +1:02:03 ", "  +10:00:00 ", "  +4d 04:00 ",
        ]  # fmt: skip
        await pilot.press("t")
        await app.until(lambda: app.rows()[0] == " │ x")


def test_relative_times_are_equally_wide() -> None:
    for seconds in (0, 59.9, 3600, 359_999, 360_000, 86_400 * 365, -5, -400_000):
        assert len(relative_text(seconds)) == 10, seconds
    assert relative_text(-5).strip() == "-0:00:05"


async def test_since_leaves_out_what_came_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = LogWriter(tmp_path)
    now = time.time()
    monkeypatch.setattr(reading, "time", SimpleNamespace(time=lambda: now))
    for ago in (7000, 1000, 300, 10):
        writer.write(b"%d ago\n" % ago, at=now - ago)
    app = LogApp([writer.log])
    async with app.run_test(size=(80, 11)) as pilot:
        await app.until(lambda: len(app.rows()) == 4)
        for words, count in (("since 1m", 1), ("since 10m", 2), ("since 1h", 3)):
            await pilot.press("T")
            await app.until(lambda count=count: len(app.rows()) == count)
            assert words in app.status_row()
        await pilot.press("T")
        await app.until(lambda: len(app.rows()) == 4 and "since" not in app.status_row())


async def test_since_counts_from_the_last_line_of_a_job_that_has_ended(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    for at in (1000, 1300, 1350):
        writer.write(b"x\n", at=at)
    app = LogApp([writer.log], lambda: True)
    async with app.run_test(size=(80, 11)) as pilot:
        await app.until(lambda: app.pane.status.state == "ended")
        await pilot.press("T")
        await app.until(lambda: len(app.rows()) == 2 and "since 1m" in app.status_row())
        await app.until(lambda: app.pane.status.state == "ended")
        await pilot.press("T")
        await app.until(lambda: len(app.rows()) == 3)


async def test_since_with_nothing_says_so(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    writer.write(b"old\n", at=1000)
    app = LogApp([writer.log])
    async with app.run_test(size=(80, 11)) as pilot:
        await app.until(lambda: len(app.rows()) == 1)
        await pilot.press("T")
        await app.until(lambda: app.rows() == [" no line in the last 1m"])


async def test_dropped_lines_are_said_and_lines_are_counted_from_the_real_start(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    for number in range(3000):
        writer.write(b"line %d\n" % number, at=1000 + number)
    app = LogApp([writer.log])
    async with app.run_test(size=(100, 11)) as pilot:
        await app.until(lambda: app.pane.status.exact and app.pane.status.line_count == 3000)
        log = app.pane.reading.log
        assert isinstance(log, MergedLog)
        log.drop_before(log.bounds().first + 2000)
        gone = log.bounds().gone
        assert gone > 0
        await pilot.press("g")
        await app.until(lambda: f"oldest {gone:,} lines dropped" in app.status_row())
        assert app.status_row().startswith(f"Paused  line {gone + 10:,} of 3,000")
        await pilot.press("ctrl+g", *str(gone + 100), "enter")
        await app.until(lambda: app.rows()[0].endswith(f"line {gone + 99}"))


class OneRow(StatusRow):
    """A status row of a given width."""

    def __init__(self, width: int, status: LogStatus, app: LogApp) -> None:
        super().__init__()
        self.width = width
        self.set_reactive(StatusRow.status, status)
        self.owner = app

    @property
    def size(self) -> Size:
        return Size(self.width, 1)

    @property
    def app(self):
        return self.owner


def test_the_status_row_says_what_matters_most_when_it_is_narrow() -> None:
    status = LogStatus(
        "paused", 1_234_567, gone=12_000, at_start=True, new_lines=42, since="10m", line=12_010, at=1000.0, at_end=False
    )
    app = LogApp([])
    wide, narrow = (OneRow(width, status, app).render().plain for width in (120, 80))
    assert "since 10m   oldest 12,000 lines dropped" in wide
    assert "+42 new lines" in wide
    assert "12,000 dropped" in narrow
    assert "+42 new lines" in narrow
    for width in range(10, 130):
        assert OneRow(width, status, app).render().cell_len == width


@pytest.mark.parametrize(
    ("text", "regex", "words"),
    [
        ("", False, "text, any case"), ("timeout", False, "text, any case"), ("Timeout", False, "text, exact case"),
        ("time.*out", True, "regular expression, any case"), ("[A-Z]x", True, "regular expression, exact case"),
        ("(", True, "regular expression"),
    ],
)  # fmt: skip
def test_how_a_pattern_is_read(text: str, regex: bool, words: str) -> None:
    assert kind_words(text, regex=regex) == words
