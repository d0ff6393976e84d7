"""What is taken from a docstring: its first sentence, the rest, and the words about each parameter."""

import pytest

from torchx_tui.components.docstrings import Docstring, first_sentence, read_docstring
from torchx_tui.components.finder import read_component


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
        ("Runs trainers, e.g. PyTorch's. Then", "Runs trainers, e.g. PyTorch's."),
        ("Compares FSDP vs. DDP, i.e. Both. Then", "Compares FSDP vs. DDP, i.e. Both."),
        ("Each has rank N. Then", "Each has rank N."),
    ],
)
def test_the_first_sentence_in_one_line(docstring, sentence):
    assert first_sentence(docstring) == sentence
    if docstring is None or "\n    " not in docstring:
        assert read_docstring(docstring).summary == sentence


def test_a_docstring_of_arguments_alone_has_no_sentence():
    found = read_docstring("\n    Args:\n        lr: the rate\n    ")
    assert (found.summary, found.parameters) == ("", {"lr": "the rate"})


def test_the_parts_of_a_docstring():
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


def test_a_component_may_stand_in_any_statement_of_a_module(component_file):
    names = ["try", "except", "else", "finally"]
    component_file.write("".join(f'{name}:\n    def {name}_(a) -> AppDef:\n        "Do."\n' for name in names))
    assert all(read_component(component_file.name(f"{name}_")).summary == "Do." for name in names)
