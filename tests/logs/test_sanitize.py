import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from support.tables import toml_table
from wcwidth import wcwidth

from torchx_tui.logs.text.sanitize import SafeLine, format_size, plain, sanitize
from torchx_tui.logs.text.sgr import SgrStyle
from torchx_tui.logs.text.shown import LINE_CAP, has_long_line, is_plain, shown_block, shown_text

TABLE = toml_table(Path(__file__).with_name("data") / "sanitize.toml")
_BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

# Pieces of sequences, in any order, cut anywhere.
_PIECES = (
    b"\x1b [ ] P X ^ _ \\ \x07 \x9b \xc2\x9b \xc2\x9d \x9c \xc2\x9c 31m 0;title ?25l 2J 38;2;1;2;3m 38:5:9m K 1K 2K "
    b"\r \b \t \x00 \x18 \x1a \x7f \x85 \xe2\x80\xae \xe2\x81\xa6 \xe2\x80\xa8 \xe4\xbd\xa0 a e\xcc\x81 \xff "
    b"\xf0\x9f\x98\x80 \xe3\x80\x80 \x1b(B \x1bc \x1b#8 \n"
).split(b" ")
_HOSTILE = st.lists(st.one_of(st.sampled_from(_PIECES), st.binary(max_size=6)), max_size=40).map(b"".join)


def is_safe(text):
    return text.isprintable() and not any(char in _BIDI or unicodedata.category(char) in ("Cc", "Cf") for char in text)


@given(_HOSTILE)
def test_no_control_of_a_terminal_gets_through(data):
    line = sanitize(data)
    assert is_safe(line.text)
    assert is_safe(plain(data.decode("utf-8", "replace")))
    end = 0
    for span in line.spans:
        assert end <= span.start < span.end <= len(line.text)
        assert span.style != SgrStyle()
        end = span.end


@given(st.text(alphabet=st.characters(exclude_categories=["C", "Zl", "Zp", "Zs"]), max_size=100))
def test_printable_text_is_kept(text):
    assert sanitize(text.encode()) == SafeLine(text)
    assert plain(plain(text)) == plain(text)
    # Character by character, as terminals count: the width of a run of them differs between releases of wcwidth.
    assert sum(map(wcwidth, plain(text))) == cell_len(plain(text))


@pytest.mark.parametrize(("data", "text"), [*TABLE["lines"], (b"\xff\xfeab", "\ufffd\ufffdab")])
def test_line_reads_as_on_a_terminal(data, text):
    assert sanitize(data if isinstance(data, bytes) else data.encode()).text == text


def test_styles_are_spans():
    line = sanitize(b"a\x1b[1;31mbc\x1b[0md")
    assert (line.text, line.spans) == ("abcd", ((1, 3, SgrStyle(fg=1, bold=True)),))
    line = sanitize(b"\x1b[31mabc\x1b[0m\rX")
    assert (line.text, line.spans) == ("Xbc", ((1, 3, SgrStyle(fg=1)),))


@pytest.mark.parametrize("sequence", [b"\x1b[>4;1m", b"\x1b[?4m", b"\x1b[1 m"])
def test_sequences_like_styles_change_nothing(sequence):
    assert sanitize(sequence + b"x") == SafeLine("x")


def test_long_line_is_cut_between_characters():
    assert sanitize(b"x" * 10_000_000, limit=1000) == SafeLine("x" * 1000 + " [+10.0 MB]", (), 9_999_000)
    text = "é€ab"
    for limit, shown in enumerate(("", "", "é", "é", "é", "é€", "é€a")):
        omitted = 7 - len(shown.encode())
        assert sanitize(text.encode(), limit=limit) == SafeLine(f"{shown} [+{omitted} B]", (), omitted)
    assert sanitize(text.encode(), limit=7) == SafeLine(text)
    # Bytes that are no characters are cut anywhere.
    assert sanitize(b"\x80" * 9, limit=5).omitted == 4


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("\t\t\t\t\tab", 10, " " * 20),
        ("\t\t\t你", 10, " " * 20),
        ("\t\tabc你", 10, " " * 16 + "abc "),
        ("\t\tééé", 9, " " * 16 + "éé"),
    ],
)
def test_cursor_stops_at_twice_the_limit(text, limit, shown):
    assert sanitize(text.encode(), limit=limit) == SafeLine(shown)


@pytest.mark.parametrize(
    ("sizes", "has_long"),
    [([0], False), ([0, 0], False), ([1], True), ([-LINE_CAP, 0], False), ([-LINE_CAP, 0, 0], False),
     ([-LINE_CAP, 0, 1], True), ([1 - LINE_CAP] * LINE_CAP, False), ([-LINE_CAP], False)],
)  # fmt: skip
def test_line_longer_than_the_cap_is_found(sizes, has_long):
    assert has_long_line(b"\n".join(b"x" * (LINE_CAP + size) for size in sizes)) is has_long


@given(st.lists(_HOSTILE, max_size=6), st.booleans())
def test_block_is_shown_as_its_lines(lines, has_long):
    lines = [line.replace(b"\n", b"") for line in [*lines, *([b"x" * (LINE_CAP + 1)] if has_long else [])]]
    assert shown_block(b"\n".join(lines)) == b"\n".join(shown_text(line).encode() for line in lines)
    assert has_long_line(b"\n".join(lines)) == has_long


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a\nb\n", True),
        (b"\xc3\xa9\n", True),
        (b"x" * LINE_CAP + b"\n", True),
        (b"x" * (LINE_CAP + 1) + b"\n", False),
        (b"a\tb\n", False),
        (b"a\rb\n", False),
        (b"\xff\n", False),
        ("\u2028\n".encode(), False),
    ],
)
def test_plain_block_is_shown_unchanged(data, expected):
    assert is_plain(data) is expected
    assert (shown_block(data) == data) is expected


@pytest.mark.parametrize(
    "unit", b"\x1b[ \x1b[1 \x1b] \x1bP \x1b[31ma \r \r\t \xe4\xbd\xa0\r \t\r\xff a\b \x1b[K\r".split(b" ")
)
def test_cost_of_a_hostile_line_is_bounded(unit):
    data = unit * (10_000_000 // len(unit))
    started = time.thread_time()
    sanitize(data)
    assert time.thread_time() - started < 2


# tmux 3.3a and Rich count a different number of cells for characters that are replaced or dropped.
@pytest.mark.parametrize(("text", "shown"), TABLE["plain"])
def test_plain_text_has_one_width_in_every_terminal(text, shown):
    assert plain(text) == shown
    assert sum(map(wcwidth, shown)) == cell_len(shown)


def test_size_has_one_unit():
    sizes = (0, 999, 1000, 999_949, 999_950, 10**6, 2_345_678, 999_999_999, 10**9)
    assert ", ".join(map(format_size, sizes)) == (
        "0 B, 999 B, 1.0 kB, 999.9 kB, 1.0 MB, 1.0 MB, 2.3 MB, 1.0 GB, 1.0 GB"
    )
