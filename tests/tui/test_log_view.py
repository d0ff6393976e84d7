"""The lines of a log on screen: following and standing still, motions, long lines, colours."""

import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from log_app import logs_of, numbered, written
from rich.style import Style

from torchx_tui.logs.lines.merge import LogLine
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.logs.text.sgr import RGB, SgrStyle
from torchx_tui.tui.logs.rows import RowLayout, RowMaker
from torchx_tui.tui.logs.style import SgrStyles, contrast, parse_hex
from torchx_tui.tui.ui import glyphs
from torchx_tui.tui.ui.frames import repaint_interval
from torchx_tui.tui.ui.palette import ANSI, COLOR_BLIND, DARK, LIGHT


def rows_of(data, stream="o", replica=0, width=40, **layout) -> Any:
    maker = RowMaker(RowLayout(width=width, **layout), DARK, glyphs.UNICODE, Style(bgcolor=DARK.bg))
    return maker.rows(LogLine(0, replica, 1000.25, stream, data, 0))


def drawn(palette, **style) -> Any:
    return SgrStyles(palette).style(SgrStyle(**style))


async def test_view_follows_or_stands_still(tmp_path):
    writer = numbered(tmp_path, 5)
    async with logs_of(writer, count=5) as logs:
        for part, line in (("10%\r", "10%"), ("100%\r", "100%")):
            writer.write(part.encode())
            await logs.last(line)
        assert len(logs.rows()) == 6
        writer.write(b"\n" + b"more\n" * 93 + b"end\n")
        await logs.has(*["more"] * 9, "end")
        await logs.press("k")
        await logs.last("more")
        assert logs.bar().endswith("  f to follow")
        assert logs.status.state == "paused"
        before, repainted = logs.rows(), []
        refresh = logs.view.refresh
        logs.view.refresh = lambda *regions, **options: repainted.append(regions) or refresh(*regions, **options)
        writer.write(b"new\n" * 1234)
        await logs.to_be(new_lines=1234)
        # Nothing is repainted for lines that are not on screen.
        assert (logs.rows(), repainted) == (before, [])
        assert logs.bar().startswith("Paused  line 99 of 1,334")
        assert logs.bar().endswith(" +1,234 new lines ")
        await logs.press("G")
        await logs.last("new")
        await logs.to_be(state="following", new_lines=0)


async def test_motions(tmp_path):
    async with logs_of(numbered(tmp_path, 100), count=100) as logs:
        for key, number in (
            ("G", 90), ("pageup", 81), ("up", 80), ("ctrl+u", 76), ("j", 77), ("ctrl+d", 81), ("g", 0), ("k", 0),
            ("pagedown", 9), ("end", 90), ("home", 0), ("f", 90),
        ):  # fmt: skip
            await logs.press(key)
            await logs.first(f"line {number}")
        # What was drawn is not kept for ever.
        assert len(logs.view.viewport.drawn) < 50


async def test_long_lines_scroll_sideways_or_wrap(tmp_path):
    writer = written(tmp_path, "".join(f"{number}abcdefghijklmnopqrstuvw\n" for number in range(10, 40)))
    async with logs_of(writer, size=(13, 8), count=30) as logs:
        await logs.last("39abcdefg…")
        await logs.press("right")
        await logs.last("ghijklmno…")
        await logs.press("w")
        end = ["39abcdefgh", "ijklmnopqr", "stuvw"]
        await logs.has("stuvw", "38abcdefgh", *end[1:], *end)
        # Motions go by rows, and the end stays at the bottom.
        await logs.press("k")
        await logs.has("ijklmnopqr", "stuvw", "38abcdefgh", *end[1:], *end[:2])
        await logs.press("j", "j", "j")
        await logs.has("stuvw", "38abcdefgh", *end[1:], *end)
        await logs.press("g")
        await logs.first("10abcdefgh")
        await logs.press("pagedown", "pageup")
        await logs.first("10abcdefgh")


async def test_wide_characters_are_wrapped_whole(tmp_path):
    async with logs_of(written(tmp_path, f"a{'你' * 6}\n"), size=(13, 8), count=1) as logs:
        await logs.press("w")
        await logs.has("a你你你你", "你你")


async def test_line_of_ten_megabytes_opens_at_once(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"before\n" + b"x" * 10_000_000)
    started = time.process_time()
    async with logs_of(ReplicaLog("r", 0, stdout=path), size=(60, 8)) as logs:
        await logs.first("before")
        await logs.press("w", until=lambda: len(logs.rows()) == 7 and logs.rows()[-1].endswith("[+10.0 MB]"))
    assert time.process_time() - started < 5


def test_the_more_a_repaint_sent_the_later_the_next_one():
    assert repaint_interval(9_000) == 1 / 8
    assert 19_000 / repaint_interval(19_000) <= 80_000


def test_levels_stand_out_where_they_are_levels():
    [strip] = rows_of(b"ERROR no ERROR here")
    word = {segment.text: segment.style for segment in strip}["ERROR"]
    assert (word.bold, word.color.name) == (True, DARK.failed.split()[-1])
    assert {segment.style.bgcolor.name for segment in strip if segment.style and segment.style.bgcolor} == {"#34191c"}
    for data, bold in ((b"WARNING slow", ["WARNING"]), (b"no ERROR here", [])):
        [strip] = rows_of(data)
        assert [text for text, style, _ in strip if style and style.bold] == bold


def test_replica_keeps_its_colour_and_number():
    [strip] = rows_of(b"text", "e", 2, numbers=(0, 3, 11), number_width=2)
    assert strip.text.startswith(" 11┆ text ")
    assert DARK.replica(11) in [style.color.name for _, style, _ in strip if style and style.color]


@given(st.binary(max_size=200), st.integers(8, 60), st.booleans(), st.integers(0, 30))
def test_rows_are_printable_and_as_wide_as_the_view(data, width, wrap, offset):
    rows = rows_of(data.replace(b"\n", b""), width=width, wrap=wrap, offset=0 if wrap else offset)
    assert rows
    assert all(row.text.isprintable() for row in rows)
    assert all(row.cell_length == width == sum(segment.cell_length for segment in row) for row in rows)


def test_printed_colours_are_kept_and_legible():
    for colors in (DARK, LIGHT, COLOR_BLIND):
        styles = SgrStyles(colors)
        for code in [*range(256), RGB, RGB | 0xFFFFFF, RGB | 0x808080]:
            for style in (SgrStyle(fg=code), SgrStyle(bg=code), SgrStyle(fg=code, reverse=True)):
                made = styles.style(style)
                back = made.bgcolor.get_truecolor() if made.bgcolor else parse_hex(colors.bg)
                fore = made.color.get_truecolor() if made.color else parse_hex(colors.log)
                assert contrast(tuple(fore), tuple(back)) >= 4.5, (colors.name, style)
    assert drawn(DARK, fg=RGB | 0x60FF60).color.name == "#60ff60"
    ansi = drawn(ANSI, fg=1, reverse=True)
    assert (ansi.color.number, ansi.reverse) == (1, True)
