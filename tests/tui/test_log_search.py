"""Search, filters and errors in the log pane, by keys."""

import threading

import pytest
from log_app import logs_of, numbered, written
from textual import events

from torchx_tui.logs.lines.background import LogFollower

LINES, SIZE = 400, (100, 14)


@pytest.fixture
def writer(tmp_path):
    """Return the writer of a log with a needle in each hundred lines, and one error."""
    text = "".join(f"line {n}{' needle' if n % 100 == 50 else ''}\n" for n in range(LINES))
    return written(tmp_path, text.replace("line 250 ", "ERROR at 250 "))


async def test_search_goes_from_match_to_match(writer):
    async with logs_of(writer, size=SIZE, count=LINES) as logs:
        await logs.type("needle")
        await logs.shows("4 of 4   n next   N previous   esc clear", on="words")
        assert logs.words().endswith("text, any case")
        # From the end, where the view followed: the nearest one above, among its neighbours.
        await logs.until(lambda: logs.matches() == [">needle"], "the match")
        assert {"line 349", "line 351"} <= {*logs.lines()}
        await logs.press("N")
        await logs.finds("ERROR at 250 needle")
        await logs.shows("3 of 4", on="words")
        await logs.press("n")
        await logs.finds("line 350 needle")
        await logs.press("n")
        await logs.finds("line 50 needle")
        assert logs.app.said == ["no match up to the bottom; continued from the top"]
        await logs.press("N")
        await logs.finds("line 350 needle")
        assert logs.app.said[1:] == ["no match up to the top; continued from the bottom"]
        writer.write(b"a new needle\n")
        await logs.shows("4 of 5", on="words")
        await logs.press("n")
        await logs.finds("a new needle")
        await logs.press("escape", until=lambda: not logs.words() and not logs.matches(), what="the search to end")
        assert logs.status.line_count == LINES + 1
        # Errors need no search.
        await logs.press("E")
        await logs.finds("ERROR at 250")
        for number, key in enumerate("Ee", 3):
            await logs.press(key)
            await logs.until(lambda: len(logs.app.said) == number, "what it says")  # noqa: B023
            assert logs.app.said[-1] == "the only error: line 251"


async def test_keys_of_one_burst_are_carried_out_in_order(writer):
    """Keys behind enter are for the log, and no key overtakes one that opens or empties the field."""
    names = {"\r": "enter", "/": "slash", "\x15": "ctrl+u"}
    async with logs_of(writer, size=SIZE, count=LINES) as logs:
        for keys, value, words in (
            ("/needle\rN", "needle", "3 of 4"),
            ("N/350\r", "350", "1 of 1"),
            ("nN/350\r", "350", "1 of 1"),
            ("t/xx\x15350\r", "350", "1 of 1"),
            ("vjj/350\r", "350", "1 of 1"),
        ):
            await logs.press("G")
            if "needle" not in keys:
                await logs.type("needle")
                await logs.shows("4 of 4", on="words")
            for key in keys:
                logs.app.post_message(events.Key(names.get(key, key), key if key.isprintable() else None))
            await logs.shows(words, on="words")
            assert logs.field.input.value == value
            await logs.press("escape")


async def test_other_ways_to_read_a_pattern(writer):
    async with logs_of(writer, size=SIZE, count=LINES) as logs:
        await logs.type("[/red]")
        await logs.shows("no match", on="words")
        await logs.ask("slash")
        await logs.press("ctrl+r", shows="regular expression", on="words")
        logs.field.input.value = "("
        await logs.press(
            "enter", until=lambda: any(text in logs.words() for text in ("is not a regular expression", "unterminated"))
        )
        logs.field.input.value = "[13]50"
        await logs.press("enter", shows="2 of 2", on="words")


@pytest.mark.parametrize("is_final", [None, lambda: True], ids=["running", "ended"])
async def test_filters_keep_and_drop_lines(writer, is_final):
    async with logs_of(writer, size=SIZE, count=LINES, is_final=is_final) as logs:
        await logs.to_be(state="ended" if is_final else "following")
        await logs.type("needle", "ampersand")
        await logs.has("line 50 needle", "line 150 needle", "ERROR at 250 needle", "line 350 needle")
        await logs.type("!ERROR", "ampersand")
        await logs.counted(3)
        assert "2 filters: &needle &!ERROR" in logs.words()
        await logs.press("escape")
        await logs.counted(LINES)
        await logs.last("line 399")


async def test_search_goes_on_in_another_replica(tmp_path):
    writers = [numbered(tmp_path, k + 2, k, "needle") for k in range(2)]
    async with logs_of(*writers, size=SIZE, count=5) as logs:
        await logs.type("needle")
        await logs.shows("5 of 5", on="words")
        await logs.press("1", shows="3 found", on="words")


async def test_match_below_wrapped_lines_is_on_screen(tmp_path):
    lines = [f"{number} {'x' * 300}" for number in range(60)]
    lines[30] = "ERROR needle"
    async with logs_of(written(tmp_path, "\n".join([*lines, ""])), size=SIZE, count=60) as logs:
        await logs.press("w")
        await logs.type("needle")
        await logs.finds("ERROR needle")
        await logs.press("G", "E")
        await logs.finds("ERROR needle")


async def test_key_without_an_error_says_so(tmp_path):
    async with logs_of(numbered(tmp_path, 3), count=3) as logs:
        await logs.press("e", until=lambda: logs.app.said == ["no error in this log"], what="what it says")


async def test_match_beyond_the_edge_is_scrolled_to(tmp_path):
    writer = numbered(tmp_path, 3, word="needle")
    writer.write(b"." * 150 + b"needle" + b"." * 90 + b"\n")
    async with logs_of(writer, size=(60, 14), count=4) as logs:
        await logs.type("needle")
        await logs.until(lambda: logs.matches() == [">needle"], "the match")
        assert logs.lines()[-1].index("needle") > 30
        # And back to where the next one is.
        await logs.press("N", until=lambda: logs.matches() == ["needle", "needle", ">needle"], what="the other matches")
        await logs.press("w", "n", until=lambda: len(logs.matches()) == 4, what="all matches")


async def test_filter_just_when_the_reading_ends_is_not_lost(writer, monkeypatch):
    turned, final = [], threading.Event()
    # As if the thread had looked for it for the last time.
    monkeypatch.setattr(LogFollower, "switch_to", lambda _follower, log: turned.append(log))
    async with logs_of(writer, size=SIZE, count=LINES, is_final=final.is_set) as logs:
        await logs.type("needle", "ampersand")
        await logs.until(lambda: turned, "the filter")
        final.set()
        logs.pane.check_final()
        await logs.counted(4)
        await logs.until(lambda: len(logs.rows()) == 4, "the lines")
