"""What is taken from a docstring: its first sentence, the rest, and the words about each parameter."""

from __future__ import annotations

import pytest

from torchx_tui.components.docstrings import Docstring, first_sentence, read_docstring


@pytest.mark.parametrize(
    ("docstring", "sentence"),
    [
        (None, ""),
        ("", ""),
        ("One. Two.", "One."),
        ("One\n    goes on. Two", "One goes on."),
        ("One\n\nTwo\n\nThree", "One"),
        ("At 10 a.m. it begins! Then", "At 10 a.m. it begins!"),
        ("What? Yes.", "What?"),
    ],
)
def test_the_first_sentence_in_one_line(docstring: str | None, sentence: str) -> None:
    assert first_sentence(docstring) == sentence
    if docstring is None or "\n    " not in docstring:
        assert read_docstring(docstring).summary == sentence


def test_the_parts_of_a_docstring() -> None:
    text = """Train it. Then save it.

    More words.

    Even more.

    Args:
        lr: how fast,
            in short
        *rest: what else
        quiet:
    """
    assert read_docstring(text) == Docstring(
        "Train it.",
        "Then save it.\n\nMore words.\n\nEven more.",
        {"lr": "how fast, in short", "rest": "what else", "quiet": ""},
    )
    assert read_docstring(None) == Docstring("", "", {})
    assert read_docstring("Alone.") == Docstring("Alone.", "", {})
