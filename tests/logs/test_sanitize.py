import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from wcwidth import wcwidth

from torchx_tui.logs.text.sanitize import SafeLine, format_size, plain, sanitize
from torchx_tui.logs.text.sgr import RGB, SgrStyle
from torchx_tui.logs.text.shown import LINE_CAP, Block, Rendering, has_long_line, shown_block, shown_text

_BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

# Text that looks for the seams: pieces of sequences, in any order, cut anywhere.
_PIECES = st.sampled_from(
    [b"\x1b", b"[", b"]", b"P", b"X", b"^", b"_", b"\\", b"\x07", b"\x9b", b"\xc2\x9b", b"\xc2\x9d", b"\x9c",
     b"\xc2\x9c",
     b"31m", b"0;title", b"?25l", b"2J", b"38;2;1;2;3m", b"38:5:9m", b"K", b"1K", b"2K", b"\r", b"\b", b"\t", b"\x00",
     b"\x18", b"\x1a", b"\x7f", b"\x85", b"\xe2\x80\xae", b"\xe2\x81\xa6", b"\xe2\x80\xa8", "你".encode(), b"a",
     b"e\xcc\x81",
     b"\xff", b"\xf0\x9f\x98\x80", b"\xe3\x80\x80", b"\x1b(B", b"\x1bc", b"\x1b#8", b"\n"]
)  # fmt: skip
_HOSTILE = st.lists(st.one_of(_PIECES, st.binary(max_size=6)), max_size=40).map(b"".join)


def _is_safe(text):
    return text.isprintable() and not any(char in _BIDI or unicodedata.category(char) in ("Cc", "Cf") for char in text)


@given(_HOSTILE)
def test_no_byte_that_drives_a_terminal_gets_through(data):
    line = sanitize(data)
    assert _is_safe(line.text)
    assert _is_safe(plain(data.decode("utf-8", "replace")))


@given(_HOSTILE)
def test_spans_are_ordered_and_within_the_text(data):
    line = sanitize(data)
    end = 0
    for span in line.spans:
        assert end <= span.start < span.end <= len(line.text)
        assert span.style != SgrStyle()
        end = span.end


@given(st.text(alphabet=st.characters(exclude_categories=["C", "Zl", "Zp", "Zs"]), max_size=100))
def test_printable_text_is_kept_as_it_is(text):
    assert sanitize(text.encode()) == SafeLine(text)
    assert plain(plain(text)) == plain(text)
    # Character by character, as terminals count: what a run of them is wide differs between releases of wcwidth.
    assert sum(map(wcwidth, plain(text))) == cell_len(plain(text))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"10%\r100%", "100%"),
        (b"100%\r10%", "10%%"),
        (b"long text\rshort\x1b[K", "short"),
        (b"long text\r\x1b[2Kx", "x"),
        (b"abcdef\b\b\b\x1b[1Kx", "   xef"),
        (b"done\r", "done"),
        (b"ab\bc", "ac"),
        (b"\b\ba", "a"),
        (b"a\tb", "a       b"),
        (b"12345678\tb", "12345678        b"),
        (b"abc\r\tx", "abc     x"),
        ("你好\rA".encode(), "A 好"),
        ("A你\b你".encode(), "A 你"),
        (b"\x1b]0;title\x07text", "text"),
        (b"\x1b]8;;http://a/\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"a\x1b]52;c;aGk=", "a"),
        (b"a\x1bPq#0;2;0\x1b\\b", "ab"),
        (b"\x1b[2J\x1b[Hx\x1b[?1049h", "x"),
        ("\x9b31mred\x9d0;t\x9cx".encode(), "redx"),
        (b"\xff\xfeab", "\ufffd\ufffdab"),
        ("abc\u202edef\u2066".encode(), "abcdef"),
        ("a\u00a0b\u3000c".encode(), "a\u00a0b  c".replace("\u00a0", " ")),
        (b"bell\x07 nul\x00", "bell nul"),
        ("\rae\u0301b".encode(), "ae\u0301b"),
        ("\ra\x1b[1me\x1b[m\u0301b".encode(), "ae\u0301b"),
        ("\rab\b\u0301".encode(), "a\u0301b"),
        ("\r你\u0301a".encode(), "你\u0301a"),
        ("\r\u0301a".encode(), "a"),
        (b"\ra" + "\u0301".encode() * 9, "a" + "\u0301" * 4),
    ],
)
def test_a_line_reads_as_on_a_terminal(data, text):
    assert sanitize(data).text == text


@pytest.mark.parametrize(
    ("sequence", "style"),
    [
        (b"31", SgrStyle(fg=1)),
        (b"1;4;91", SgrStyle(fg=9, bold=True, underline=True)),
        (b"38;5;208", SgrStyle(fg=208)),
        (b"48;5;208", SgrStyle(bg=208)),
        (b"1;31;39", SgrStyle(bold=True)),
        (b"1;41;49", SgrStyle(bold=True)),
        (b"30;47", SgrStyle(fg=0, bg=7)),
        (b"97;100", SgrStyle(fg=15, bg=8)),
        (b"90;107", SgrStyle(fg=8, bg=15)),
        (b"38:2:1:2:3:4:5", SgrStyle(fg=RGB | 0x020304)),
        (b"38;2;1;2;3;1", SgrStyle(fg=RGB | 0x010203, bold=True)),
        (b"38:2::1:2:3:9", SgrStyle(fg=RGB | 0x010203)),
        (b"38;2;1;2;3", SgrStyle(fg=RGB | 0x010203)),
        (b"38:5:208", SgrStyle(fg=208)),
        (b"48:2:1:2:3", SgrStyle(bg=RGB | 0x010203)),
        (b"48:2::1:2:3", SgrStyle(bg=RGB | 0x010203)),
        (b"58;5;1;3", SgrStyle(italic=True)),
        (b"4:3;9", SgrStyle(underline=True, strike=True)),
        (b"31;0;7", SgrStyle(reverse=True)),
        (b"38;5;999;2", SgrStyle(dim=True)),
    ],
)
def test_colours_and_attributes_are_kept(sequence, style):
    line = sanitize(b"a\x1b[" + sequence + b"mbc\x1b[0md")
    assert line.text == "abcd"
    assert [(span.start, span.end, span.style) for span in line.spans] == [(1, 3, style)]


@pytest.mark.parametrize(
    "sequence", [b"\x1b[>4;1m", b"\x1b[?4m", b"\x1b[1 m", b"\x1b[8m", b"\x1b[5m", b"\x1b[38m", b"\x1b[4:0m"]
)
def test_what_is_no_style_of_ours_changes_nothing(sequence):
    assert sanitize(sequence + b"x") == SafeLine("x")


def test_a_style_does_not_outlive_an_overwrite():
    line = sanitize(b"\x1b[31mabc\x1b[0m\rX")
    assert line.text == "Xbc"
    assert [(span.start, span.end) for span in line.spans] == [(1, 3)]


def test_a_long_line_is_capped_and_says_so():
    line = sanitize(b"x" * 10_000_000, limit=1000)
    assert line.text == "x" * 1000 + " [+10.0 MB]"
    assert line.omitted == 9_999_000


def test_the_cursor_goes_no_further_than_twice_the_limit():
    assert sanitize(b"\t" * 5 + b"ab", limit=10) == SafeLine(" " * 20)
    assert sanitize("\t\t\t你".encode(), limit=10) == SafeLine(" " * 20)
    assert sanitize("\t\tabc你".encode(), limit=10) == SafeLine(" " * 16 + "abc ")
    assert sanitize("\t\tééé".encode(), limit=9) == SafeLine(" " * 16 + "éé")


def test_a_cap_parts_no_character():
    assert sanitize("你你你".encode(), limit=4).text == "你 [+6 B]"
    assert sanitize("你你你".encode(), limit=9).text == "你你你"


@pytest.mark.parametrize(
    ("data", "has_long"),
    [
        (b"", False),
        (b"x" * LINE_CAP, False),
        (b"x" * (LINE_CAP + 1), True),
        (b"\n" + b"x" * LINE_CAP, False),
        (b"\n" + b"x" * LINE_CAP + b"\n" + b"x" * LINE_CAP, False),
        (b"\n" + b"x" * LINE_CAP + b"\n" + b"x" * (LINE_CAP + 1), True),
        (b"x\n" * LINE_CAP, False),
    ],
)
def test_a_line_that_is_longer_than_what_is_shown(data, has_long):
    assert has_long_line(data) is has_long


@given(st.lists(_HOSTILE, max_size=6), st.booleans())
def test_a_block_is_shown_as_its_lines_are(lines, has_long):
    lines = [line.replace(b"\n", b"") for line in [*lines, *([b"x" * (LINE_CAP + 1)] if has_long else [])]]
    shown = b"\n".join(shown_text(line).encode() for line in lines)
    assert shown_block(b"\n".join(lines)) == shown
    assert has_long_line(b"\n".join(lines)) == has_long


@pytest.mark.parametrize(
    ("data", "known", "found"),
    [
        (b"a\nb\n", Rendering.UNEDITED, Rendering.PLAIN),
        (b"a\tb\n", Rendering.UNEDITED, Rendering.CHANGED),
        ("é\n".encode(), Rendering.UNEDITED, Rendering.CHANGED),
        (b"x" * LINE_CAP + b"\n", Rendering.UNEDITED, Rendering.PLAIN),
        (b"x" * (LINE_CAP + 1) + b"\n", Rendering.UNEDITED, Rendering.CHANGED),
        (b"a\rb\n", Rendering.EDITED, Rendering.EDITED),
        (b"a\n", Rendering.EDITED, Rendering.EDITED),
    ],
)
def test_how_a_block_is_shown_is_known_once_it_was(data, known, found):
    block = Block(data, data.count(b"\n"), known)
    shown = block.shown()
    assert block.rendering is found
    assert shown == block.shown() == shown_block(data)


@pytest.mark.parametrize(
    "unit",
    [
        b"\x1b[",
        b"\x1b[1",
        b"\x1b]",
        b"\x1bP",
        b"\x1b[31ma",
        b"\r",
        b"\r\t",
        b"\xe4\xbd\xa0\r",
        b"\t\r\xff",
        b"a\b",
        b"\x1b[K\r",
    ],
)
def test_the_cost_of_a_hostile_line_is_bounded(unit):
    data = unit * (10_000_000 // len(unit))
    started = time.thread_time()
    sanitize(data)
    assert time.thread_time() - started < 2


def test_plain_keeps_names_on_one_line():
    assert plain("a\x1b[31mb\r\nc\td\x1b]0;x\x07e\u202ef") == "ab c def"


def test_sizes_have_one_unit():
    assert [format_size(n) for n in (12, 1200, 9_900_000, 2 * 10**9)] == ["12 B", "1.2 kB", "9.9 MB", "2.0 GB"]
    assert re.fullmatch(r"\d+ B", format_size(999))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        # tmux 3.3a and Rich count a different number of cells for each of these.
        ("love\u2764\ufe0f-1", "love\u2764-1"),
        ("step-1\ufe0f\u20e3", "step-1\u20e3"),
        ("ok\U0001f44d\U0001f3fd", "ok\U0001f44d"),
        ("हिन्दी", "हन्द"),
        ("\u2630 menu", "\ufffd menu"),
        ("a\u3164\uffa0b", "ab"),
        # Other terminals draw two of these as one flag.
        ("team-\U0001f1e9\U0001f1ea", "team-DE"),
        # These have one width everywhere.
        ("ที่ é e\u0301 界 \U0001f680", "ที่ é e\u0301 界 \U0001f680"),
    ],
)
def test_plain_text_has_one_width_in_every_terminal(name, shown):
    assert plain(name) == shown
    assert sum(map(wcwidth, shown)) == cell_len(shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\vc\fd\re\nf\r\ng", "a b c d e f g"),
        ("a\x00b\x07c\bd", "abcd"),
        ("\U0001f1e6\U0001f1ff\U0001f1e5", "AZ\ufffd"),
        ("\u2630\u262f\u2638", "\ufffd\u262f\u2638"),
        ("a\u3000b\u2028c\u00a0d", "a  b c d"),
        ("a\u200bb\u202ec", "abc"),
        ("\ue000\u0378", "\ufffd\ufffd"),
        ("x\ufe0f\u0903", "x"),
        ("\u0902", "\u0902"),
        ("x\u0903", "x"),
    ],
)
def test_a_message_in_one_line(text, shown):
    assert plain(text) == shown


@pytest.mark.parametrize(
    ("limit", "shown", "omitted"),
    [(1, "", 7), (2, "é", 5), (3, "é", 5), (4, "é", 5), (5, "é€", 2), (6, "é€a", 1), (7, "é€ab", 0), (0, "", 7)],
)
def test_a_long_line_is_cut_between_characters(limit, shown, omitted):
    mark = f" [+{omitted} B]" if omitted else ""
    assert sanitize("é€ab".encode(), limit=limit) == SafeLine(shown + mark, (), omitted)


def test_bytes_that_are_no_characters_are_cut_anywhere():
    assert sanitize(b"\x80" * 9, limit=5).omitted == 4


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_999, "1000.0 kB"),
        (10**6, "1.0 MB"),
        (2_345_678, "2.3 MB"),
        (10**9, "1.0 GB"),
    ],
)
def test_a_size_has_one_unit(count, text):
    assert format_size(count) == text


@pytest.mark.parametrize(
    ("first", "last"), [(0xFE00, 0xFE0F), (0x1F3FB, 0x1F3FF), (0xE0100, 0xE01EF)], ids=["variations", "skins", "more"]
)
def test_what_only_changes_the_character_before_it_is_dropped(first, last):
    assert plain(f"a{chr(first)}b{chr(last)}c") == "abc"


def test_their_neighbours_are_kept():
    assert plain("\U0001f3fa\U0001f400") == "\U0001f3fa\U0001f400"
