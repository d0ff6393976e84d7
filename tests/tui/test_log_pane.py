"""The log pane: replicas and streams, its states, and what ends its reading."""

import threading

from log_app import LogApp, logs_of, written
from log_writing import LogWriter
from support.waiting import PATIENCE
from textual.widgets import OptionList

from torchx_tui.logs.lines.merge import MergedLog
from torchx_tui.tui.logs.replica_bar import ReplicaBar
from torchx_tui.tui.ui.palette import PALETTES


def replicas(folder, count):
    return [written(folder, f"replica {number}\n", number) for number in range(count)]


async def test_one_replica_has_streams_and_no_number(tmp_path):
    writer = written(tmp_path, "out\n")
    writer.write(b"err\n", "e")
    async with logs_of(writer, count=2) as logs:
        both = [" │ out", " ┆ err"]
        assert logs.bar().startswith("Following  2 lines ")
        assert logs.bar().endswith("wrap off  combined")
        assert not logs.screen.query_one(ReplicaBar).display
        for stream, rows in (("combined", both), ("stdout", both[:1]), ("stderr", both[1:]), ("combined", both)):
            await logs.until(lambda rows=rows: logs.rows() == rows, stream)
            assert logs.status.stream == stream
            await logs.press("o")
        # Keys that do nothing here are dimmed.
        actions = (("stream", ()), ("wrap", ()), ("neighbour", (1,)), ("replica", (0,)))
        assert [logs.pane.check_action(*each) for each in actions] == [True, True, None, None]


async def test_keys_choose_replicas(tmp_path):
    async with logs_of(*replicas(tmp_path, 3), size=(120, 10), count=3) as logs:
        bar = logs.screen.query_one(ReplicaBar)
        await logs.until(lambda: bar.render().plain.startswith("a all 3   0  1  2 "), "the bar")
        assert [row[9:] for row in logs.rows()] == [f"  {number}│ replica {number}" for number in range(3)]
        for keys, shown, words in (
            ("1", "1", "replica 1 of 3"), (">", "2", "replica 2 of 3"), (">", "0", "replica 0 of 3"),
            ("<", "2", "replica 2 of 3"), ("a", "012", "3 merged"), ("9", "012", "3 merged"),
        ):  # fmt: skip
            await logs.press(keys)
            await logs.has(*(f"replica {number}" for number in shown))
            assert logs.status.shown == words
        await logs.press("#")
        logs.app.screen.query_one(OptionList).highlighted = 2
        await logs.press("enter")
        await logs.has("replica 1")
        # Without the rows of state.
        await logs.press("a")
        logs.pane.compact = True
        await logs.until(lambda: logs.view.size.height == 10, "room for more lines")
        await logs.until(lambda: logs.rows()[:1] == ["  0│ replica 0"], "lines without times")
        assert logs.pane.state_text().plain == "Following"


async def test_number_finds_its_replica_in_the_list(tmp_path):
    async with logs_of(*replicas(tmp_path, 120), size=(120, 20), count=120) as logs:
        await logs.press("#", "1", "0", "7")
        choices = logs.app.screen.query_one(OptionList)
        assert choices.highlighted == 108
        # There is no 1072, and a cursor that was moved forgets what was typed.
        await logs.press("2")
        assert choices.highlighted == 3
        await logs.press("down", "9")
        assert choices.highlighted == 10
        await logs.press("enter")
        await logs.has("replica 9")


async def test_failed_replicas_are_marked(tmp_path):
    async with logs_of(*replicas(tmp_path, 12), size=(120, 12), count=12) as logs:
        logs.pane.set_failed(frozenset([11]))
        await logs.settled()
        bar = logs.screen.query_one(ReplicaBar).render()
        assert "  11✗ " in bar.plain
        assert "$style-failed" in [span.style for span in bar.spans]
        await logs.pilot.click(ReplicaBar, offset=(1 + bar.plain.index("11✗"), 0))
        await logs.to_be(replica=11)


async def test_tasks_of_an_array_have_their_own_numbers(tmp_path):
    writers = [LogWriter(tmp_path, number, "task") for number in (5, 6, 12)]
    for writer in writers:
        writer.write(b"a line\n")
    async with logs_of(*writers, size=(130, 10), count=3) as logs:
        assert sorted(row.split("│")[0].split()[-1] for row in logs.rows()) == ["12", "5", "6"]
        bar = logs.screen.query_one(ReplicaBar)
        await logs.until(lambda: bar.render().plain.split()[:6] == ["a", "all", "3", "5", "6", "12"])
        # There is none with the number 1.
        for keys, shown in ("1", "3 merged"), ("6", "replica 6, one of 3"), ("#12\r", "replica 12, one of 3"):
            await logs.press(*keys.replace("\r", ""), *["enter"] * keys.count("\r"))
            await logs.to_be(shown=shown)


async def test_pane_waits_for_the_first_line_and_ends_with_the_job(tmp_path):
    writer, final = LogWriter(tmp_path), threading.Event()
    async with logs_of(writer, is_final=final.is_set) as logs:
        await logs.to_be(state="waiting")
        assert logs.bar().startswith("Waiting for the first line")
        writer.write(b"only\n")
        await logs.to_be(state="following")
        final.set()
        logs.pane.check_final()
        await logs.to_be(state="ended")
        assert logs.bar().startswith("Ended  1 line ")
        assert logs.rows() == [" │ only"]
        assert next(status.state for status in logs.app.statuses if status.state != "none") == "waiting"


async def test_clearing_and_leaving_end_the_reading_thread(tmp_path):
    async with logs_of(*replicas(tmp_path, 2), count=2) as logs:
        follower = logs.pane.session.follower
        logs.pane.clear("nothing is chosen")
        assert follower.join(PATIENCE)
        assert logs.rows() == [" nothing is chosen"]
        await logs.to_be(state="none", reason="nothing is chosen")
        assert logs.pane.state_text().plain == "nothing is chosen"
        logs.pane.show(logs.app.logs)
        await logs.counted(2)
        follower = logs.pane.session.follower
    assert follower.join(PATIENCE)


async def test_log_that_cannot_be_read_says_why(tmp_path, monkeypatch):
    def broken(_log):
        raise OSError("the disk is gone")

    monkeypatch.setattr(MergedLog, "open", broken)
    async with logs_of(*replicas(tmp_path, 1), size=(80, 10)) as logs:
        await logs.until(lambda: logs.rows() == [" the log can no longer be read: the disk is gone"])
        assert logs.bar().rstrip() == "the log can no longer be read: the disk is gone"


async def test_every_theme_draws(tmp_path):
    text = "\x1b[31mred\x1b[0m \x1b[38;5;16mblack\x1b[0m \x1b[7;42mreverse\nERROR x\nWARNING y\n"
    app = LogApp(*replicas(tmp_path, 1), written(tmp_path, text, 1))
    async with logs_of(app=app, size=(120, 12), count=4) as logs:
        for theme in sorted(PALETTES):
            app.theme = theme
            await logs.settled()
            assert logs.lines()[1:] == ["red black reverse", "ERROR x", "WARNING y"]
