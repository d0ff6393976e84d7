"""Search, filters and errors in the log pane, by keys."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from log_app import LogApp
from log_writing import LogWriter
from textual import events
from textual.pilot import Pilot
from textual.widgets import Static

from torchx_tui.logs.view.background import LogFollower
from torchx_tui.tui.logs.pane import LogPane
from torchx_tui.tui.logs.search_row import SearchRow
from torchx_tui.tui.ui.palette import DARK

LINES = 400


@pytest.fixture
def writer(tmp_path: Path) -> LogWriter:
    """A log with a needle in each hundred lines, and one error."""
    writer = LogWriter(tmp_path)
    text = "".join(f"line {n}{' needle' if n % 100 == 50 else ''}\n" for n in range(LINES))
    writer.write(text.replace("line 250 ", "ERROR at 250 ").encode())
    return writer


class SearchApp(LogApp):
    """Keeps what the pane says."""

    said: list[str]

    def on_log_pane_said(self, message: LogPane.Said) -> None:
        self.said.append(message.text)

    def words(self) -> str:
        """What stands in the search row."""
        kind = self.search.query_one("#pattern-kind", Static)
        return f"{self.search_words()}  {kind.content}" if self.search.display else ""

    def lit(self) -> list[str]:
        """The texts on screen that are drawn as a match, the current one marked."""
        current = DARK.accent_fill.rpartition("#")[2]
        other = DARK.match_row.rpartition("#")[2]
        found = []
        for y in range(self.view.size.height):
            for segment in self.view.render_line(y):
                color = segment.style.bgcolor.name if segment.style and segment.style.bgcolor else ""
                if color.endswith((current, other)):
                    found.append(f"{'>' if color.endswith(current) else ''}{segment.text}")
        return found


@pytest.fixture
def app(writer: LogWriter) -> SearchApp:
    made = SearchApp([writer.log])
    made.said = []
    return made


async def search(pilot: Pilot, app: SearchApp, key: str, text: str) -> None:
    await app.until(lambda: app.pane.status.line_count == LINES)
    await pilot.press(key)
    await app.until(lambda: app.query_one(SearchRow).input.has_focus)
    await pilot.press(*("space" if letter == " " else letter for letter in text), "enter")


async def test_search_counts_keeps_context_and_goes_from_match_to_match(app: SearchApp) -> None:
    async with app.run_test(size=(100, 14)) as pilot:
        await search(pilot, app, "slash", "needle")
        await app.until(lambda: "4 of 4   n next   N previous   esc clear" in app.words())
        assert app.words().endswith("text, any case")
        # From the end, where the view followed: the nearest one above, among its neighbours.
        await app.until(lambda: app.lit() == [">needle"])
        assert any("line 349" in row for row in app.rows())
        assert any("line 351" in row for row in app.rows())
        await pilot.press("N")
        await app.until(lambda: any("ERROR at 250 needle" in row for row in app.rows()))
        await app.until(lambda: "3 of 4" in app.words())
        await pilot.press("n")
        await app.until(lambda: any("line 350 needle" in row for row in app.rows()))
        await pilot.press("n")
        await app.until(lambda: app.said == ["no match below"])
        await pilot.press("escape")
        await app.until(lambda: not app.words() and not app.lit())
        assert app.pane.status.line_count == LINES


async def test_keys_behind_enter_in_one_burst_are_for_the_log(app: SearchApp) -> None:
    async with app.run_test(size=(100, 14)) as pilot:
        await app.until(lambda: app.pane.status.line_count == LINES)
        await pilot.press("slash")
        await app.until(lambda: app.query_one(SearchRow).input.has_focus)
        for key in (*"needle", "enter", "N"):
            app.post_message(events.Key(key, None if key == "enter" else key))
        await app.until(lambda: "3 of 4" in app.words())
        assert app.query_one(SearchRow).input.value == "needle"


@pytest.mark.parametrize("keys", ["N/350\r", "nN/350\r", "t/xx\x15350\r", "vjj/350\r"])
async def test_keys_of_one_burst_are_carried_out_one_after_the_other(app: SearchApp, keys: str) -> None:
    """A key that opens a row, or empties it, is not overtaken by what is typed behind it."""
    names = {"\r": "enter", "/": "slash", "\x15": "ctrl+u"}
    async with app.run_test(size=(100, 14)) as pilot:
        await search(pilot, app, "slash", "needle")
        await app.until(lambda: "4 of 4" in app.words())
        for key in keys:
            app.post_message(events.Key(names.get(key, key), key if key.isprintable() else None))
        await app.until(lambda: "1 of 1" in app.words())
        assert app.query_one(SearchRow).input.value == "350"


async def test_a_match_in_new_lines_is_counted_and_found(app: SearchApp, writer: LogWriter) -> None:
    async with app.run_test(size=(100, 14)) as pilot:
        await search(pilot, app, "slash", "needle")
        await app.until(lambda: "4 of 4" in app.words())
        writer.write(b"a new needle\n")
        await app.until(lambda: "4 of 5" in app.words())
        await pilot.press("n")
        await app.until(lambda: any("a new needle" in row for row in app.rows()))


async def test_filters_keep_and_drop_lines_apart_from_search(app: SearchApp) -> None:
    async with app.run_test(size=(100, 14)) as pilot:
        await search(pilot, app, "ampersand", "needle")
        await app.until(lambda: app.pane.status.line_count == 4)
        kept = ["line 50 needle", "line 150 needle", "ERROR at 250 needle", "line 350 needle"]
        await app.until(lambda: [row.partition("│ ")[2] for row in app.rows()] == kept)
        await pilot.press("ampersand")
        await app.until(lambda: app.query_one(SearchRow).input.has_focus)
        await pilot.press(*"!ERROR", "enter")
        await app.until(lambda: app.pane.status.line_count == 3)
        assert "2 filters: &needle &!ERROR" in app.words()
        await pilot.press("escape")
        await app.until(lambda: app.pane.status.line_count == LINES)


async def test_errors_are_found_without_a_search(app: SearchApp) -> None:
    async with app.run_test(size=(100, 14)) as pilot:
        await app.until(lambda: app.pane.status.line_count == LINES)
        await pilot.press("E")
        await app.until(lambda: any("ERROR at 250" in row for row in app.rows()))
        await pilot.press("E")
        await app.until(lambda: app.said == ["no error above"])


async def test_a_regular_expression_and_a_bad_one(app: SearchApp) -> None:
    async with app.run_test(size=(100, 14)) as pilot:
        await app.until(lambda: app.pane.status.line_count == LINES)
        await pilot.press("slash", "ctrl+r")
        await app.until(lambda: "regular expression" in app.words())
        before = app.words()
        await pilot.press(*"(", "enter")
        await app.until(lambda: app.words() != before)
        assert "is not a regular expression" in app.words() or "unterminated" in app.words(), app.words()
        await pilot.press("backspace", *"[13]50", "enter")
        await app.until(lambda: "2 of 2" in app.words())


async def test_a_hostile_pattern_is_a_text(app: SearchApp) -> None:
    async with app.run_test(size=(100, 14)) as pilot:
        await search(pilot, app, "slash", "[/red]")
        await app.until(lambda: "no match" in app.words())


async def test_a_search_goes_on_in_another_replica(tmp_path: Path) -> None:
    writers = [LogWriter(tmp_path, k) for k in range(2)]
    for k, one in enumerate(writers):
        one.write(b"".join(b"replica %d needle %d\n" % (k, n) for n in range(k + 2)))
    app = SearchApp([one.log for one in writers])
    app.said = []
    async with app.run_test(size=(100, 14)) as pilot:
        await app.until(lambda: app.pane.status.line_count == 5)
        await pilot.press("slash", *"needle", "enter")
        await app.until(lambda: "5 of 5" in app.words())
        await pilot.press("1")
        await app.until(lambda: "3 found" in app.words())


async def test_a_match_beyond_the_edge_is_scrolled_to(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    writer.write(b"".join(b"needle %d\n" % n for n in range(3)) + b"." * 150 + b"needle" + b"." * 90 + b"\n")
    app = SearchApp([writer.log])
    app.said = []
    async with app.run_test(size=(60, 14)) as pilot:
        await app.until(lambda: len(app.rows()) == 4)
        await pilot.press("slash", *"needle", "enter")
        await app.until(lambda: app.lit() == [">needle"])
        assert app.rows()[-1].partition("│ ")[2].index("needle") > 30
        # And back to where the next one is.
        await pilot.press("N")
        await app.until(lambda: app.lit() == ["needle", "needle", ">needle"])
        await pilot.press("w", "n")
        await app.until(lambda: len(app.lit()) == 4)


async def test_the_log_of_a_job_that_has_ended_is_filtered_too(writer: LogWriter) -> None:
    app = SearchApp([writer.log], lambda: True)
    app.said = []
    async with app.run_test(size=(100, 14)) as pilot:
        await app.until(lambda: app.pane.status.state == "ended")
        await search(pilot, app, "ampersand", "needle")
        await app.until(lambda: app.pane.status.line_count == 4 and len(app.rows()) == 4)
        await pilot.press("escape")
        await app.until(lambda: app.pane.status.line_count == LINES and len(app.rows()) > 4)


async def test_a_filter_that_comes_just_when_the_reading_ends_is_not_lost(
    writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    turned: list[object] = []
    # As if the thread had looked for it for the last time.
    monkeypatch.setattr(LogFollower, "switch_to", lambda _follower, log: turned.append(log))
    final = threading.Event()
    app = SearchApp([writer.log], final.is_set)
    app.said = []
    async with app.run_test(size=(100, 14)) as pilot:
        await search(pilot, app, "ampersand", "needle")
        await app.until(lambda: turned)
        final.set()
        app.pane.check_final()
        await app.until(lambda: app.pane.status.line_count == 4 and len(app.rows()) == 4)
