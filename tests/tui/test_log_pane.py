from __future__ import annotations

import threading
from pathlib import Path

import pytest
from log_app import LogApp
from log_writing import LogWriter
from support.waiting import PATIENCE
from textual.widgets import OptionList

from torchx_tui.logs.view.merge import MergedLog
from torchx_tui.tui.logs.replica_bar import ReplicaBar
from torchx_tui.tui.ui.palette import PALETTES, STYLES


def replicas(folder: Path, count: int, lines: int = 1) -> list[LogWriter]:
    writers = [LogWriter(folder, replica) for replica in range(count)]
    for line in range(lines):
        for number, writer in enumerate(writers):
            writer.write(b"replica %d line %d\n" % (number, line), at=1000 + line)
    return writers


def logs_of(writers: list[LogWriter]) -> list:
    return [writer.log for writer in writers]


async def test_one_replica_has_no_number_and_a_bar_for_each_stream(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    writer.write(b"to stdout\n", "o")
    writer.write(b"to stderr\n", "e")
    app = LogApp([writer.log])
    async with app.run_test(size=(60, 10)):
        await app.until(lambda: app.rows() == [" │ to stdout", " ┆ to stderr"])
        assert app.status_row().startswith("Following  2 lines ")
        assert app.status_row().endswith("wrap off  combined")
        assert not app.query_one(ReplicaBar).display


async def test_several_replicas_are_merged_with_numbers_and_a_bar(tmp_path: Path) -> None:
    app = LogApp(logs_of(replicas(tmp_path, 3)))
    async with app.run_test(size=(120, 10)):
        await app.until(lambda: len(app.rows()) == 3)
        assert [row[9:] for row in app.rows()] == [
            "  0│ replica 0 line 0",
            "  1│ replica 1 line 0",
            "  2│ replica 2 line 0",
        ]
        await app.until(lambda: app.query_one(ReplicaBar).render().plain.startswith("a all 3   0  1  2 "))
        assert app.pane.status.shown == "3 merged"


async def test_64_replicas_are_one_stream_in_time_order(tmp_path: Path) -> None:
    app = LogApp(logs_of(replicas(tmp_path, 64, lines=3)))
    async with app.run_test(size=(120, 40)):
        await app.until(lambda: app.pane.status.line_count == 192)
        await app.until(lambda: app.rows() and app.rows()[-1].endswith("63│ replica 63 line 2"))
        assert app.rows()[-2].endswith("62│ replica 62 line 2")


async def test_keys_choose_replicas(tmp_path: Path) -> None:
    app = LogApp(logs_of(replicas(tmp_path, 3)))
    async with app.run_test(size=(60, 10)) as pilot:

        async def shown(keys: str, rows: list[int]) -> None:
            await pilot.press(keys)
            await app.until(lambda: [row.split("replica ")[1][0] for row in app.rows()] == [str(row) for row in rows])

        await app.until(lambda: len(app.rows()) == 3)
        await shown("1", [1])
        assert app.pane.status.shown == "replica 1 of 3"
        await shown(">", [2])
        await shown(">", [0])
        await shown("<", [2])
        await shown("a", [0, 1, 2])
        await shown("9", [0, 1, 2])
        await pilot.press("#")
        await pilot.pause()
        app.screen.query_one(OptionList).highlighted = 2
        await shown("enter", [1])


async def test_a_number_finds_its_replica_in_the_list(tmp_path: Path) -> None:
    app = LogApp(logs_of(replicas(tmp_path, 120)))
    async with app.run_test(size=(60, 20)) as pilot:
        await app.until(lambda: len(app.rows()) > 1)
        await pilot.press("#", "1", "0", "7")
        await pilot.pause()
        choices = app.screen.query_one(OptionList)
        assert choices.highlighted == 108
        # There is no 1072, and a cursor that was moved forgets what was typed.
        await pilot.press("2")
        assert choices.highlighted == 3
        await pilot.press("down", "9")
        assert choices.highlighted == 10
        await pilot.press("enter")
        await app.until(lambda: [row.split("replica ")[1].split()[0] for row in app.rows()] == ["9"])


async def test_tasks_of_an_array_have_their_own_numbers(tmp_path: Path) -> None:
    writers = [LogWriter(tmp_path, number, "task") for number in (5, 6, 12)]
    for writer in writers:
        writer.write(b"a line\n")
    app = LogApp([writer.log for writer in writers])
    async with app.run_test(size=(130, 10)) as pilot:
        await app.until(lambda: sorted(row.split("│")[0].split()[-1] for row in app.rows()) == ["12", "5", "6"])
        bar = app.query_one(ReplicaBar)
        await app.until(lambda: bar.render().plain.split()[:6] == ["a", "all", "3", "5", "6", "12"])
        # There is none with this number.
        await pilot.press("1")
        assert app.pane.status.shown == "3 merged"
        await pilot.press("6")
        await app.until(lambda: app.pane.status.shown == "replica 6, one of 3")
        await pilot.press("#", "1", "2", "enter")
        await app.until(lambda: app.pane.status.shown == "replica 12, one of 3")


async def test_streams_take_turns(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    writer.write(b"out\n", "o")
    writer.write(b"err\n", "e")
    app = LogApp([writer.log])
    async with app.run_test(size=(60, 10)) as pilot:
        await app.until(lambda: len(app.rows()) == 2)
        await pilot.press("o")
        await app.until(lambda: app.rows() == [" │ out"])
        assert app.pane.status.stream == "stdout"
        await pilot.press("o")
        await app.until(lambda: app.rows() == [" ┆ err"])
        await pilot.press("o")
        await app.until(lambda: len(app.rows()) == 2)


async def test_it_waits_for_the_first_line_and_ends_with_the_job(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    final = threading.Event()
    app = LogApp([writer.log], final.is_set)
    async with app.run_test(size=(60, 10)):
        await app.until(lambda: app.pane.status.state == "waiting")
        assert app.status_row().startswith("Waiting for the first line")
        writer.write(b"only\n")
        await app.until(lambda: app.pane.status.state == "following")
        final.set()
        app.pane.check_final()
        await app.until(lambda: app.pane.status.state == "ended")
        assert app.status_row().startswith("Ended  1 line ")
        assert app.rows() == [" │ only"]
        assert next(status.state for status in app.statuses if status.state != "none") == "waiting"


async def test_compact_leaves_out_the_rows_of_state(tmp_path: Path) -> None:
    app = LogApp(logs_of(replicas(tmp_path, 3)))
    async with app.run_test(size=(120, 10)) as pilot:
        app.pane.compact = True
        await pilot.pause()
        assert app.view.size.height == 10
        await app.until(lambda: app.rows() and app.rows()[0] == "  0│ replica 0 line 0")
        assert app.pane.state_text().plain == "Following"


async def test_clear_ends_the_reading_thread(tmp_path: Path) -> None:
    app = LogApp(logs_of(replicas(tmp_path, 2)))
    async with app.run_test(size=(60, 10)):
        await app.until(lambda: len(app.rows()) == 2)
        follower = app.pane.reading.follower
        assert follower is not None
        app.pane.clear("nothing is chosen")
        assert follower.join(PATIENCE)
        assert app.rows() == [" nothing is chosen"]
        assert app.pane.status.state == "none"
        assert app.pane.status.reason == "nothing is chosen"
        assert app.pane.state_text().plain == "nothing is chosen"


async def test_a_log_that_cannot_be_read_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_log: MergedLog) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(MergedLog, "open", broken)
    app = LogApp(logs_of(replicas(tmp_path, 1)))
    async with app.run_test(size=(80, 10)):
        await app.until(lambda: app.rows() == [" the log can no longer be read: the disk is gone"])
        assert app.status_row().rstrip() == "the log can no longer be read: the disk is gone"


async def test_leaving_the_app_ends_the_reading_thread(tmp_path: Path) -> None:
    app = LogApp(logs_of(replicas(tmp_path, 2)))
    async with app.run_test(size=(60, 10)):
        await app.until(lambda: len(app.rows()) == 2)
        follower = app.pane.reading.follower
    assert follower is not None
    assert follower.join(PATIENCE)


async def test_keys_that_do_nothing_are_dimmed(tmp_path: Path) -> None:
    path = tmp_path / "combined.log"
    path.write_bytes(b"x\n")
    writer = LogWriter(tmp_path)
    app = LogApp([writer.log])
    async with app.run_test(size=(60, 10)):
        assert app.pane.check_action("stream", ()) is True
        assert app.pane.check_action("neighbour", (1,)) is None
        assert app.pane.check_action("replica", (0,)) is None
        assert app.pane.check_action("wrap", ()) is True


@pytest.mark.parametrize("theme", sorted(PALETTES))
async def test_every_theme_draws(tmp_path: Path, theme: str) -> None:
    writers = replicas(tmp_path, 2)
    writers[0].write(b"\x1b[31mred\x1b[0m \x1b[38;5;16mblack\x1b[0m \x1b[7;42mreverse\nERROR x\nWARNING y\n")
    app = LogApp(logs_of(writers), theme=theme)
    async with app.run_test(size=(120, 12)):
        await app.until(lambda: len(app.rows()) == 5)
        assert app.rows()[-3].endswith("red black reverse")


async def test_failed_replicas_are_marked(tmp_path: Path) -> None:
    app = LogApp(logs_of(replicas(tmp_path, 12)))
    async with app.run_test(size=(120, 12)) as pilot:
        await app.until(lambda: len(app.rows()) == 10)
        app.pane.set_failed(frozenset([11]))
        await pilot.pause()
        bar = app.query_one(ReplicaBar).render()
        assert "  11✗ " in bar.plain
        assert any(span.style == STYLES.failed for span in bar.spans)
        await pilot.click(ReplicaBar, offset=(1 + bar.plain.index("11✗"), 0))
        await app.until(lambda: app.pane.status.replica == 11)
