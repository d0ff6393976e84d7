"""Parses docstrings: the first sentence, the description, and the help of each parameter."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

# Not after "e.g.", "i.e.", "vs." and "cf.".
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\.\w\.)(?<!\bvs\.)(?<!\bcf\.)\s+(?=[^a-z])")


@dataclass(frozen=True)
class Docstring:
    """The parts of a docstring.

    Args:
        summary: Its first sentence, in one line.
        description: The rest of it, without the parameters.
        parameters: The help of each parameter, in one line each.
    """

    summary: str = ""
    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def first_sentence(docstring: str | None) -> str:
    """Return the first sentence in one line; cheap, for a list of many components."""
    paragraph = inspect.cleandoc(docstring or "").split("\n\n", 1)[0]
    return _SENTENCE_END.split(" ".join(paragraph.split()), maxsplit=1)[0]


def read_docstring(docstring: str | None) -> Docstring:
    """Parse a docstring in Google's, NumPy's or Sphinx's style."""
    if not docstring:
        return Docstring()
    import docstring_parser

    try:
        parsed = docstring_parser.parse(docstring)
    except docstring_parser.ParseError:
        return Docstring(first_sentence(docstring), inspect.cleandoc(docstring))
    texts = [parsed.short_description or "", parsed.long_description or ""]
    whole = "\n\n".join(text for text in texts if text)
    summary = first_sentence(whole)
    head, _, rest = whole.partition("\n\n")
    remainder = " ".join(head.split()).removeprefix(summary).strip()
    helps = {
        parameter.arg_name.lstrip("*"): " ".join((parameter.description or "").split()) for parameter in parsed.params
    }
    return Docstring(summary, "\n\n".join(text for text in (remainder, rest.strip()) if text), helps)
