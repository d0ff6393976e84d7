"""What the linter says of component files held against TorchX's: rules, words, lines and columns."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from interop.linter_corpus import corpus
from interop.oracle import Refused, hold, names_of, outcome, theirs

from torchx_tui.components import validate

AREA = "linter"
Told = list[tuple[str, str, int, int, str]]


def told(messages: list[Any]) -> Told:
    return [(one.name, one.description, one.line, one.char, one.severity) for one in messages]


def both(path: Path, source: str) -> tuple[Any, Any]:
    """Return what TorchX and what we say of a source; our warnings, of which TorchX has none, are left out."""
    path.write_bytes(source.encode())
    linter = theirs("torchx.specs.file_linter")
    ours = [one for one in validate(str(path), "f") if one.severity != "warning"]
    return outcome(lambda: told(linter.validate(str(path), "f"))), told(ours)


def explained(source: str, their: Any, our: Told) -> str | None:
    """Return the entry that a source falls under."""
    if isinstance(their, Refused):
        return "types that are no plain name" if their.names[0] == "AttributeError" else None
    known = {one[1] for one in their}
    more = [one[1] for one in our if one[1] not in known]
    fewer = [one[1] for one in their if one[1] not in {one[1] for one in our}]
    for name, (words, shape) in RULES.items():
        if any(re.search(words, text) for text in [*more, *fewer]) and re.search(shape, source):
            return name
    return None


# Of each entry: words of a message that one of the two has, and what the source then has.
RULES = {
    "async functions": ("is async", r"^async def f"),
    "**kwargs": (r"Unsupported argument '\*\*", r"\*\*kwargs"),
    "defined twice": ("Missing type annotation", r"(?s)def f\(.*def f\("),
    "arguments before /": ("Missing type annotation", r"def f\(a, /"),
    "classes": ("has no method build|Missing type annotation|Unsupported container", r"class f"),
    "Literal": ("'Literal'", r"Literal\["),
    "Union": ("'Union'", r"Union\["),
    "AppDef in quotes": ("incorrect return annotation", r"-> 'specs\.AppDef'"),
    "tuples of any length": ("Non-primitive element type", r"tuple\[str, \.\.\."),
    "tuples of one or none": ("Unsupported tuple type", r"(?i)tuple\["),
    "quotes around a type": ("Non-primitive element type ['\"]{2}|Non-primitive element type", r"(?i)tuple\["),
    "nothing twice": ("'Optional'|'None", r"Optional\[Optional|None \| None"),
    "a byte order mark": (r"U\+FEFF", "^\ufeff"),
}


@pytest.mark.parametrize("number", range(0, len(corpus()), 50))
def test_the_corpus(torchx: str, tmp_path: Path, number: int) -> None:
    for source in corpus()[number : number + 50]:
        their_messages, our_messages = both(tmp_path / "component.py", source)
        if "\0" in source and isinstance(their_messages, Refused):
            # Python before 3.11.4 raises ValueError for NUL characters, and TorchX does not catch it.
            continue
        hold(AREA, their_messages, our_messages, lambda their, our, text=source: explained(text, their, our), source)


def one(arguments: str, returns: str = "AppDef") -> str:
    return f'def f({arguments}) -> {returns}:\n    """Do."""\n'


NO_BUILD = "class f:\n    pass\n"
# Of each entry: the source, words of what TorchX says and of what we say; `[]` is nothing.
EXAMPLES: dict[str, tuple[str, str, str]] = {
    "types that are no plain name": (one("a: typing.List[str]"), "AttributeError", "[]"),
    "async functions": ("async " + one("a: str"), "Function f not found", "Function: f is async"),
    "**kwargs": (one("**kwargs: str"), "[]", "Unsupported argument '**kwargs'"),
    "defined twice": (one("a") + one("a: str"), "Missing type annotation", "[]"),
    "arguments before /": (one("a, /"), "[]", "Missing type annotation for argument 'a'"),
    "classes": (NO_BUILD, "[]", "Class: f has no method build"),
    "Literal": (one("a: Literal['x']"), "Unsupported container type", "[]"),
    "Union": (one("a: Union[str, None]"), "Unsupported container type", "[]"),
    "AppDef in quotes": (one("a: str", "'specs.AppDef'"), "incorrect return annotation", "[]"),
    "tuples of any length": (one("a: tuple[str, ...]"), "Non-primitive element type", "[]"),
    "tuples of one or none": (one("a: tuple[()]"), "[]", "Unsupported tuple type"),
    "quotes around a type": (one("a: tuple[list[str], int]"), "type ''list[str]''", "type 'list[str]'"),
    "nothing twice": (one("a: Optional[Optional[str]]"), "Unsupported container type 'Optional'", "[]"),
    "a byte order mark": ("\ufeff" + one("a: str"), "non-printable character", "[]"),
}


@pytest.mark.parametrize("name", names_of(AREA))
def test_each_difference_is_there(torchx: str, tmp_path: Path, name: str) -> None:
    source, their_words, our_words = EXAMPLES[name]
    their_messages, our_messages = both(tmp_path / "component.py", source)
    their_text, our_text = str(their_messages), str(our_messages)
    assert their_text == "[]" if their_words == "[]" else their_words in their_text
    assert our_text == "[]" if our_words == "[]" else our_words in our_text
    assert their_messages != our_messages


def test_no_example_is_left_over() -> None:
    assert set(EXAMPLES) == set(names_of(AREA))
    assert len(corpus()) >= 500
