"""What no drawn line lets through."""

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from torchx_tui.tui.terminal.output_filter import ControlFilter

BLACK = Color(0, 0, 0)


def filtered(*texts: str) -> list[str]:
    return [segment.text for segment in ControlFilter().apply([Segment(text) for text in texts], BLACK)]


@pytest.mark.parametrize(
    "code", [*range(0x20), *range(0x7F, 0xA0), 0x200E, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)
def test_control_characters_are_dropped(code):
    assert filtered(f"a{chr(code)}b") == ["ab"]


def test_a_sequence_in_pieces_is_no_sequence():
    assert filtered("\x1b", "]0;title", "\x07") == ["", "]0;title", ""]


def test_other_text_stays_and_keeps_its_style():
    # A no-break space, a private character and a cut emoji are not printable to Python, but harmless.
    texts = ["plain", "Größe 模型 ●", "a\u00a0b", "\ue0b0", "👩\u200d🔬"]
    assert filtered(*texts) == texts
    styled = Segment("a\x1bb", Style(bold=True))
    assert ControlFilter().apply([styled], BLACK) == [Segment("ab", Style(bold=True))]
