from __future__ import annotations

import os
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_app import LogApp
from log_writing import LogWriter
from rich.style import Style

from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.logs.text.sgr import RGB, SgrStyle
from torchx_tui.logs.view.merge import LogLine
from torchx_tui.tui.logs.rows import RowLayout, RowMaker
from torchx_tui.tui.logs.style import SgrStyles, contrast, parse_hex
from torchx_tui.tui.ui import glyphs
from torchx_tui.tui.ui.governor import repaint_interval
from torchx_tui.tui.ui.palette import ANSI_DARK, DARK, LIGHT


def numbered(folder: Path, count: int) -> LogWriter:
    writer = LogWriter(folder)
    writer.write(b"".join(b"line %d\n" % number for number in range(count)))
    return writer


def line(data: bytes, stream: str = "o", replica: int = 0) -> LogLine:
    return LogLine(0, replica, 1000.25, stream, data, 0)


def maker(width: int = 40, **layout: object) -> RowMaker:
    return RowMaker(RowLayout(width=width, **layout), DARK, glyphs.UNICODE, Style(bgcolor=DARK.bg))  # type: ignore[arg-type]


async def test_scrolling_up_pauses_and_the_view_stands_still(tmp_path: Path) -> None:
    writer = numbered(tmp_path, 100)
    app = LogApp([writer.log])
    async with app.run_test(size=(60, 11)) as pilot:
        await app.until(lambda: app.rows()[-1:] == [" │ line 99"])
        await pilot.press("k")
        await pilot.pause()
        assert app.status_row().endswith("  G to follow")
        assert app.rows()[-1] == " │ line 98"
        assert app.pane.status.state == "paused"
        before = app.rows()
        writer.write(b"new\n" * 1234)
        await app.until(lambda: app.pane.status.new_lines == 1234)
        assert app.rows() == before
        assert app.status_row().endswith(" +1,234 new lines ")
        assert app.status_row().startswith("Paused  line 99 of 1,334")
        await pilot.press("G")
        await app.until(lambda: app.rows()[-1] == " │ new")
        assert app.pane.status.state == "following"
        assert app.pane.status.new_lines == 0


async def test_lines_come_while_it_follows(tmp_path: Path) -> None:
    writer = numbered(tmp_path, 5)
    app = LogApp([writer.log])
    async with app.run_test(size=(60, 11)):
        await app.until(lambda: len(app.rows()) == 5)
        writer.write(b"10%\r")
        await app.until(lambda: app.rows()[-1] == " │ 10%")
        writer.write(b"100%\r")
        await app.until(lambda: app.rows()[-1] == " │ 100%")
        assert len(app.rows()) == 6
        writer.write(b"\n" + b"more\n" * 50)
        await app.until(lambda: app.rows() == [" │ more"] * 10)


async def test_motions(tmp_path: Path) -> None:
    app = LogApp([numbered(tmp_path, 100).log])
    async with app.run_test(size=(60, 11)) as pilot:

        async def first_row(key: str, number: int) -> None:
            await pilot.press(key)
            await app.until(lambda: app.rows()[:1] == [f" │ line {number}"])

        await app.until(lambda: app.rows()[:1] == [" │ line 90"])
        await first_row("pageup", 81)
        await first_row("up", 80)
        await first_row("ctrl+u", 76)
        await first_row("j", 77)
        await first_row("ctrl+d", 81)
        await first_row("g", 0)
        await first_row("k", 0)
        await first_row("pagedown", 9)
        await first_row("end", 90)
        await first_row("home", 0)
        await first_row("f", 90)


async def test_long_lines_scroll_sideways_or_wrap(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    text = "".join(chr(65 + number % 26) for number in range(40))
    writer.write(f"{text}\nshort\n".encode())
    app = LogApp([writer.log])
    async with app.run_test(size=(23, 8)) as pilot:
        await app.until(lambda: app.rows() == [f" │ {text[:19]}…", " │ short"])
        await pilot.press("right")
        await app.until(lambda: app.rows()[0] == f" │ {text[8:27]}…")
        await pilot.press("w")
        await app.until(lambda: app.rows() == [f" │ {text[:20]}", f" │ {text[20:]}", " │ short"])


async def test_wrapped_lines_move_by_rows_and_keep_the_end_at_the_bottom(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    writer.write(b"".join(b"%d" % (number % 10) * 25 + b"\n" for number in range(30)))
    app = LogApp([writer.log])
    async with app.run_test(size=(13, 8)) as pilot:
        await app.until(lambda: len(app.rows()) == 7)
        await pilot.press("w")
        wrapped = [" │ " + "9" * 10] * 2 + [" │ " + "9" * 5]
        await app.until(lambda: app.rows()[-3:] == wrapped)
        before = app.rows()
        await pilot.press("k")
        await app.until(lambda: app.rows()[1:] == before[:-1])
        await pilot.press("j", "j", "j")
        await app.until(lambda: app.rows() == before)
        await pilot.press("g")
        await app.until(lambda: app.rows()[0] == " │ " + "0" * 10)
        await pilot.press("pagedown", "pageup")
        await app.until(lambda: app.rows()[0] == " │ " + "0" * 10)


async def test_a_line_of_ten_megabytes_opens_at_once(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"before\n" + b"x" * 10_000_000)
    app = LogApp([ReplicaLog("r", 0, stdout=path)])
    started = time.process_time()
    async with app.run_test(size=(60, 8)) as pilot:
        await app.until(lambda: len(app.rows()) == 2)
        await pilot.press("w")
        await app.until(lambda: len(app.rows()) == 7)
        assert app.rows()[-1].endswith("[+10.0 MB]")
    assert time.process_time() - started < 5


async def test_hostile_bytes_do_not_reach_the_screen(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    for number in range(30):
        writer.write(
            b"\x1b]0;t\x07\x1b[2J\xc2\x9b1m\x1b[999999999C\x00\x07[/red] [bold]" + os.urandom(60).replace(b"\n", b"")
        )
        writer.write(b"\nline %d\n" % number)
    app = LogApp([writer.log])
    async with app.run_test(size=(80, 24)) as pilot:
        await app.until(lambda: app.rows()[-1:] and app.rows()[-1].endswith("line 29"))
        for key in ("w", "t", "k", "g", "right"):
            await pilot.press(key)
        rows = [app.view.render_line(y).text for y in range(app.view.size.height)]
        assert all(row.isprintable() for row in rows)


async def test_memory_of_the_view_does_not_grow_with_the_log(tmp_path: Path) -> None:
    app = LogApp([numbered(tmp_path, 100_000).log])
    async with app.run_test(size=(60, 11)) as pilot:
        await app.until(lambda: app.pane.status.exact and app.pane.status.line_count == 100_000)
        for _ in range(5):
            await pilot.press("pageup")
        viewport = app.view.viewport
        assert viewport is not None
        assert len(viewport.drawn) < 50


async def test_a_change_that_is_not_on_screen_repaints_nothing(tmp_path: Path) -> None:
    writer = numbered(tmp_path, 100)
    app = LogApp([writer.log])
    async with app.run_test(size=(60, 11)) as pilot:
        await app.until(lambda: app.rows()[-1:] == [" │ line 99"] and app.pane.status.exact)
        await pilot.press("k")
        await pilot.pause()
        asked: list[object] = []
        refresh = app.view.refresh
        app.view.refresh = lambda *regions, **options: asked.append(regions) or refresh(*regions, **options)  # type: ignore[method-assign, func-returns-value]
        writer.write(b"x\n")
        await app.until(lambda: app.pane.status.new_lines == 1)
        assert asked == []


def test_a_flood_repaints_less_often_on_a_large_screen() -> None:
    assert repaint_interval(80 * 24) == 1 / 8
    assert 200 * 50 * 1.6 / repaint_interval(200 * 50) <= 80_001


def test_levels_stand_out_where_they_are_levels() -> None:
    [strip] = maker().rows(line(b"ERROR no ERROR here"))
    styles = {segment.text: segment.style for segment in strip}
    word = styles["ERROR"]
    assert word is not None
    assert word.bold
    assert word.color is not None
    assert word.color.name == DARK.failed.split()[-1]
    assert {segment.style.bgcolor.name for segment in strip if segment.style and segment.style.bgcolor} == {"#34191c"}
    [strip] = maker().rows(line(b"WARNING slow"))
    assert any(segment.text == "WARNING" and segment.style and segment.style.bold for segment in strip)
    [strip] = maker().rows(line(b"no ERROR here"))
    assert not any(segment.style and segment.style.bold for segment in strip)


def test_a_replica_keeps_its_colour_and_number() -> None:
    rows = maker(numbers=(0, 3, 11), number_width=2)
    [strip] = rows.rows(line(b"text", "e", replica=2))
    assert strip.text.startswith(" 11┆ text ")
    assert any(
        segment.style and segment.style.color and segment.style.color.name == DARK.replica(11) for segment in strip
    )


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.binary(max_size=200), st.integers(8, 60), st.booleans(), st.integers(0, 30))
def test_every_row_is_as_wide_as_the_view(data: bytes, width: int, wrap: bool, offset: int) -> None:
    rows = maker(width, wrap=wrap, offset=0 if wrap else offset).rows(line(data.replace(b"\n", b"")))
    assert rows
    assert all(row.cell_length == width == sum(segment.cell_length for segment in row) for row in rows)


def test_printed_colours_are_kept_and_legible() -> None:
    for colors in (DARK, LIGHT):
        styles = SgrStyles(colors)
        for code in [*range(256), RGB, RGB | 0xFFFFFF, RGB | 0x808080]:
            for style in (SgrStyle(fg=code), SgrStyle(bg=code), SgrStyle(fg=code, reverse=True)):
                made = styles.style(style)
                back = made.bgcolor.get_truecolor() if made.bgcolor else parse_hex(colors.bg)
                fore = made.color.get_truecolor() if made.color else parse_hex(colors.log)
                ratio = contrast((fore[0], fore[1], fore[2]), (back[0], back[1], back[2]))
                assert ratio >= 4.5, (colors.name, style, ratio)
    bright = SgrStyles(DARK).style(SgrStyle(fg=RGB | 0x60FF60))
    assert bright.color is not None
    assert bright.color.name == "#60ff60"
    ansi = SgrStyles(ANSI_DARK).style(SgrStyle(fg=1, reverse=True))
    assert ansi.color is not None
    assert (ansi.color.number, ansi.reverse) == (1, True)
