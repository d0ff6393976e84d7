"""Writes docs/reference/signatures.md, where each documented name lives: ``python docs/reference/signatures.py``."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interop.documented import Documented, Part

TESTS = Path(__file__).parents[2] / "tests"

HEAD = """\
# Signatures: what the documentation of TorchX names, and where it is here

Every class, function, parameter and default that the documentation names, part by part. The documentation spans three
generations of TorchX, which contradict one another here and there; where they do, the newest one holds, and what the
earlier ones name beyond it is kept. `self` is left out; `<factory>` is a new, empty list or mapping each time. A name
in another module is no difference, as [names.md](names.md) says where all of them are.

What an empty third column stands for is checked: name, order, kind and default of each parameter, each member of an
enumeration, type and default of each run option. The kinds of differences:

- addition: there is more here, and all of it can be left out;
- generation: another generation of TorchX has it so, or the documentation contradicts itself;
- upstream fault: as documented it would be wrong;
- not here.
"""


def page() -> str:
    """Return the page."""
    parts = _parts()
    names = [entry for part in parts for entry in part.names]
    return "\n".join([HEAD, _counts(names), "", *(_section(part) for part in parts)])


def _parts() -> list[Part]:
    sys.path.insert(0, str(TESTS))
    try:
        from interop.documented import PARTS
    finally:
        sys.path.remove(str(TESTS))
    return PARTS


def _counts(names: list[Documented]) -> str:
    kinds = Counter(entry.kind or ("as documented" if entry.here else "not here") for entry in names)
    shown = ("as documented", "addition", "generation", "upstream fault", "not here")
    return f"Of {len(names)} names: " + ", ".join(f"{kinds[kind]} {kind}" for kind in shown) + "."


def _section(part: Part) -> str:
    rows = [f"| {_documented(entry)} | {_here(entry)} | {_difference(entry)} |" for entry in part.names]
    head = [f"## {part.title}", "", f"Generation: {part.generation}.", "", "| documented | here | difference |"]
    return "\n".join([*head, "|---|---|---|", *rows, ""])


def _documented(entry: Documented) -> str:
    says = entry.says.replace("=list", "=<factory>").replace("=dict", "=<factory>")
    if entry.what in ("value", "members", "run option"):
        return _code(f"{entry.name}: {says}")
    if says.startswith("("):
        return _code(entry.name + says if "(" not in entry.name else entry.name)
    return _code(entry.name)


def _here(entry: Documented) -> str:
    here = entry.says if entry.what == "base class" else entry.here
    return _code(here.replace(":", ".")) if here else ""


def _difference(entry: Documented) -> str:
    if not entry.why:
        return ""
    added = ", ".join(f"`{name}`" for name in entry.adds)
    given = ", ".join(f"`{name}`" for name in entry.gives_default)
    facts = [f"further {added}"] if added else []
    facts += [f"{given} can be left out"] if given else []
    return f"{entry.kind or entry.what}: " + "; ".join([*facts, entry.why]).replace("|", "\\|")


def _code(text: str) -> str:
    escaped = text.replace("|", "\\|")
    return f"`{escaped}`"


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page(), encoding="utf-8")
