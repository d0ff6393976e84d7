"""Where the pane stands: the last error of a log, times since the start, how far back it goes, what was dropped."""

import time
from types import SimpleNamespace

import pytest
from log_app import LogApp, logs_of, numbered, written
from log_writing import LogWriter
from textual.geometry import Size

from torchx_tui.logs.lines.merge import MergedLog
from torchx_tui.tui.logs import session
from torchx_tui.tui.logs.rows import relative_text
from torchx_tui.tui.logs.search import LogSearch, kind_words
from torchx_tui.tui.logs.status import LogStatus, StatusRow

ERRORS = "ERROR first\n" + "between\n" * 50 + "ERROR last\n" + "after\n" * 3000


def show_cause(logs, replica=None):
    """Show the logs anew, and ask for their last error at once."""
    logs.pane.show(logs.app.logs, is_final=lambda: True)
    logs.pane.select_replica(replica)
    logs.pane.show_cause()


async def test_last_error_is_shown_once_it_is_read(tmp_path):
    async with logs_of(*(written(tmp_path, ERRORS, k) for k in range(2))) as logs:
        for replica in (None, 1):
            show_cause(logs, replica)
            await logs.finds("ERROR last")
            await logs.to_be(state="ended", exact=True, replica=replica)
            assert not logs.screen.query_one(LogSearch).is_travelling
        assert logs.app.said == []


async def test_log_without_an_error_stays_at_its_end(tmp_path):
    async with logs_of(numbered(tmp_path, 5000)) as logs:
        show_cause(logs)
        await logs.counted(5000)
        await logs.last("line 4999")
        await logs.until(lambda: not logs.screen.query_one(LogSearch).is_travelling, "the end of the search")
        await logs.to_be(state="ended")
        assert (logs.lines()[-1], logs.app.said) == ("line 4999", [])


async def test_late_error_does_not_move_what_a_person_has_moved(tmp_path, monkeypatch):
    text = "ERROR early\n" + "".join(f"line {number}\n" for number in range(5000))
    held, read_older = True, MergedLog.read_older

    def slow(log, seconds, lines=1e9):
        if log.bounds().end - log.bounds().first > 0 and held:
            time.sleep(0.01)
            return True
        return read_older(log, seconds, min(lines, 100))

    monkeypatch.setattr(MergedLog, "read_older", slow)
    monkeypatch.setattr("torchx_tui.logs.source.file_source.BLOCK", 4096)
    monkeypatch.setattr("torchx_tui.logs.source.file_source.FIRST_READ", 512)
    async with logs_of(written(tmp_path, text)) as logs:
        show_cause(logs)
        await logs.last("line 4999")
        assert logs.screen.query_one(LogSearch).is_travelling
        await logs.press("k")
        held = False
        await logs.counted(5001)
        await logs.pilot.pause(0.1)
        assert logs.lines()[-1] == "line 4998"


async def test_patterns_of_the_settings_are_errors(tmp_path):
    async with logs_of(written(tmp_path, "ERROR one\nXid 79\nlast\n" + "x\n" * 100), count=103) as logs:
        logs.pane.set_error_patterns([r"Xid \d+"])
        await logs.press("E")
        await logs.finds("Xid 79")


async def test_each_replica_is_found_again_where_it_was_left(tmp_path):
    writers = [numbered(tmp_path, 200, k, f"r{k}") for k in range(2)]
    async with logs_of(*writers, count=400) as logs:
        await logs.press("1")
        await logs.counted(200)
        await logs.last("r1 199")
        await logs.press("pageup", "pageup")
        await logs.last("r1 181")
        before = logs.lines()
        await logs.press("0")
        await logs.last("r0 199")
        assert logs.status.state == "following"
        writers[1].write(b"later\n" * 30)
        await logs.press("1")
        await logs.has(*before)
        assert logs.status.state == "paused"
        await logs.press("o", "o", "o")
        await logs.has(*before)


async def test_following_keeps_the_columns_that_were_scrolled_to(tmp_path):
    writer = written(tmp_path, "".join(f"{number:04}" * 40 + "\n" for number in range(50)))
    async with logs_of(writer, count=50) as logs:
        await logs.press("right", "right")
        last = logs.lines()[-1]
        assert last.startswith("00490049")
        added = "".join(f"{number:04}" for number in range(40))
        writer.write(f"{added}\n".encode())
        await logs.last(f"{added[16:72]}…")
        await logs.press("k", "f", "g", "G")
        await logs.last(f"{added[16:72]}…")


async def test_times_are_off_of_the_day_or_since_the_start(tmp_path):
    writer = LogWriter(tmp_path)
    for seconds in (0, 5, 3723, 36_000, 360_000):
        writer.write(b"x\n", at=1_700_000_000.25 + seconds)
    async with logs_of(writer, count=5) as logs:

        def times():
            return [row.partition("│")[0] for row in logs.rows()]

        assert times() == [" "] * 5
        await logs.press("t", until=lambda: len(times()[0]) == 10, what="the time of day")
        await logs.press("t", until=lambda: times()[0].endswith(".250 "), what="milliseconds")
        await logs.press("t")
        since = ["   +0:00:00 ", "   +0:00:05 ", "   +1:02:03 ", "  +10:00:00 ", "  +4d 04:00 "]
        await logs.until(lambda: times() == since, "the times since the start")
        await logs.press("t", until=lambda: times() == [" "] * 5, what="no times")


def test_relative_times_are_equally_wide():
    for seconds in (0, 59.9, 3600, 359_999, 360_000, 86_400 * 365, -5, -400_000):
        assert len(relative_text(seconds)) == 10, seconds
    assert relative_text(-5).strip() == "-0:00:05"


async def test_since_leaves_out_what_came_before(tmp_path, monkeypatch):
    writer, now = LogWriter(tmp_path), time.time()
    monkeypatch.setattr(session, "time", SimpleNamespace(time=lambda: now))
    for ago in (7000, 1000, 300):
        writer.write(b"%d ago\n" % ago, at=now - ago)
    async with logs_of(writer, size=(80, 11), count=3) as logs:
        await logs.press("T", until=lambda: logs.rows() == [" no line in the last 1m"])
        for words, count in (("since 10m", 1), ("since 1h", 2)):
            await logs.press("T", until=lambda count=count: len(logs.rows()) == count, what=words)
            assert words in logs.bar()
        await logs.press("T", until=lambda: len(logs.rows()) == 3 and "since" not in logs.bar(), what="all lines")


async def test_since_counts_from_the_last_line_of_an_ended_job(tmp_path):
    writer = LogWriter(tmp_path)
    for at in (1000, 1300, 1350):
        writer.write(b"x\n", at=at)
    async with logs_of(writer, is_final=lambda: True, size=(80, 11), count=3) as logs:
        for since, count in (("1m", 2), ("10m", 3)):
            await logs.to_be(state="ended")
            await logs.press("T")
            await logs.to_be(since=since)
            await logs.until(lambda count=count: len(logs.rows()) == count, since)


async def test_lines_are_counted_from_the_start_also_if_some_were_dropped(tmp_path):
    writer = LogWriter(tmp_path)
    for number in range(3000):
        writer.write(b"line %d\n" % number, at=1000 + number)
    async with logs_of(writer, size=(100, 11), count=3000) as logs:
        log = logs.pane.session.log
        log.drop_before(log.bounds().first + 2000)
        gone = log.bounds().gone
        assert gone > 0
        await logs.press(
            "g", shows=(f"Paused  line {gone + 10:,} of 3,000", f"oldest {gone:,} lines dropped"), on="bar"
        )
        await logs.type(str(gone + 100), "ctrl+g")
        await logs.first(f"line {gone + 99}")


class OneRow(StatusRow):
    """A status row of an app that does not run, of a given width."""

    def __init__(self, width, status, app):
        super().__init__()
        self.set_reactive(StatusRow.status, status)
        self.width, self.owner = width, app

    size = property(lambda self: Size(self.width, 1))
    app = property(lambda self: self.owner)


def test_status_row_has_what_matters_most_when_it_is_narrow():
    status = LogStatus(
        "paused", 1_234_567, gone=12_000, at_start=True, new_lines=42, since="10m", line=12_010, at=1000.0, at_end=False
    )
    app = LogApp()
    rows = {width: OneRow(width, status, app).render() for width in range(10, 130)}
    for width, words in ((120, "since 10m   oldest 12,000 lines dropped"), (80, "12,000 dropped")):
        assert words in rows[width].plain
        assert "+42 new lines" in rows[width].plain
    assert all(row.cell_len == width for width, row in rows.items())


@pytest.mark.parametrize(
    ("text", "regex", "words"),
    [
        ("", False, "text, any case"), ("timeout", False, "text, any case"), ("Timeout", False, "text, exact case"),
        ("time.*out", True, "regular expression, any case"), ("[A-Z]x", True, "regular expression, exact case"),
        ("(", True, "regular expression"),
    ],
)  # fmt: skip
def test_how_a_pattern_is_read(text, regex, words):
    assert kind_words(text, regex=regex) == words
