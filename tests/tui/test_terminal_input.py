"""What a terminal sends, and what it never should: nothing ends the reading, and no key is lost behind it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.tables import toml_table
from textual import events

from torchx_tui.tui.terminal.input import LARGEST_TERMINAL, TerminalInput

ROWS = toml_table(Path(__file__).with_name("terminal_input.toml"))

_NUMBERS = ["", "0", "1", "5", "27", "97", "255", "1114111", "1114112", "55296", "99999999", "9" * 21, "-1", "٣"]
_FINALS = "u~ABCDEFHPQRSMmtcyInZ^"
_BYTES = [
    b"\xe4x",
    b"\xff",
    b"\xc3\xa4",
    b"\xe2\x82",
    b"\xf0\x9f\x94",
    b"\x80",
    b"\x00",
    b"\x7f",
    b"\x9b",
    b"\xed\xa0\x80",
]
_CLOSED = b"\x1b[201~\x18\x1b\\"


def keys(*chunks: bytes) -> list[str]:
    terminal = TerminalInput()
    return [event.key for chunk in chunks for event in terminal.feed(chunk) if isinstance(event, events.Key)]


def characters(data: bytes) -> str:
    found = TerminalInput().feed(data)
    return "".join(event.character or "" for event in found if isinstance(event, events.Key))


class TestBytesThatAreNotUtf8:
    def test_each_becomes_a_sign_and_the_letter_behind_stays(self):
        assert characters(b"\xe4x\xe4\xa1yz") == "\ufffdx\ufffd\ufffdyz"

    def test_in_a_paste(self):
        pasted = [
            event for event in TerminalInput().feed(b"\x1b[200~f\xfcr\x1b[201~") if isinstance(event, events.Paste)
        ]
        assert [event.text for event in pasted] == ["f\ufffdr"]

    @pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 100])
    def test_escapes_in_a_paste_are_no_keys(self, size):
        data = b"a\x1b[200~Z\x1bB\x11\x1b[0m\x13\x1b\x1b[201~q\x1b[200~2\x1b[201~"
        terminal = TerminalInput()
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        found = [event for chunk in chunks for event in terminal.feed(chunk)]
        texts = [event.text if isinstance(event, events.Paste) else str(getattr(event, "key", "")) for event in found]
        assert texts == ["a", "ZB\x11[0m\x13", "q", "2"]

    def test_a_letter_that_comes_in_two_reads(self):
        assert keys(b"\xc3", b"\xa4q") == ["ä", "q"]

    def test_an_old_mouse_report(self):
        assert keys(b"\x1b[M \xe4!", b"q")[-1] == "q"


class TestKittyReports:
    @pytest.mark.parametrize(("sequence", "expected"), ROWS["kitty"])
    def test_as_pressed(self, sequence, expected):
        # A release is no key, and what follows is read as it was typed.
        assert keys(f"\x1b{sequence}".encode(), b"q") == [*expected, "q"]


class TestSizesAndPlaces:
    @pytest.mark.parametrize("report", ["[48;99999999;99999999;1;1t", "[48;0;0;0;0t", "[48;24;999999999999;0;0t"])
    def test_a_size_that_no_terminal_has_is_dropped(self, report):
        assert not list(TerminalInput().feed(f"\x1b{report}".encode()))

    def test_a_size_is_taken(self):
        (resize,) = TerminalInput().feed(b"\x1b[48;40;120;800;1200t")
        assert isinstance(resize, events.Resize)
        assert resize.size == (120, 40)

    def test_a_click_far_away_is_dropped(self):
        assert not list(TerminalInput().feed(b"\x1b[<0;99999999999;3M"))

    def test_clicks_after_a_size_without_pixels(self):
        found = list(TerminalInput().feed(b"\x1b[48;40;120;0;0t\x1b[<0;5;3M" + b"q"))
        assert isinstance(found[-1], events.Key)


def _piece(chance: random.Random) -> bytes:
    kind = chance.randrange(8)
    if kind == 0:
        return chance.choice(_BYTES)
    if kind == 1:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(1, 12)))
    if kind == 2:
        return chance.choice(
            [b"\x1b", b"\x1b\x1b", b"\x1bO", b"\x1b]0;", b"\x1bP", b"\x1b_", b"\x1b[200~", b"\x1b[201~", b"\x1b[?"]
        )
    if kind == 3:
        return chance.choice(["q", "ä", "界", "👩‍🚀", "e\u0301", "\u202e"]).encode()
    if kind == 4:
        mode = chance.choice(["2026", "2048", chance.choice(_NUMBERS)])
        return f"\x1b[?{mode};{chance.choice(_NUMBERS)}$y".encode()
    if kind == 5:
        fields = ";".join(chance.choice(_NUMBERS) for _ in range(3))
        return f"\x1b[<{fields}{chance.choice('Mm')}".encode()
    if kind == 6:
        fields = ";".join(chance.choice(_NUMBERS) for _ in range(4))
        return f"\x1b[48;{fields}t".encode()
    fields = (
        ":".join(chance.choice(_NUMBERS) for _ in range(chance.randrange(1, 4))) for _ in range(chance.randrange(4))
    )
    return f"\x1b[{chance.choice(['', '?', '<', '>'])}{';'.join(fields)}{chance.choice(_FINALS)}".encode()


@pytest.mark.parametrize(("seed", "count"), [(0, 10_000), pytest.param(1, 100_000, marks=pytest.mark.soak)])
def test_nothing_that_is_sent_ends_it(seed, count):
    chance = random.Random(seed)
    terminal = TerminalInput()
    for number in range(count):
        data = _piece(chance)
        for event in terminal.feed(data):
            if isinstance(event, events.Key):
                assert event.key.encode(), data
                assert (event.character or "").encode() is not None, data
            elif isinstance(event, events.Resize):
                assert event.size <= LARGEST_TERMINAL, data
        if number % 100 == 0:
            # Whatever was left open is closed, and a key is a key again.
            list(terminal.feed(_CLOSED))
            found = list(terminal.feed(b"\x1b[201~~~~q"))
            assert isinstance(found[-1], events.Key), data
            assert found[-1].key == "q", data
