"""Writes docs/reference/compatibility.md, what differs from TorchX: ``python docs/reference/compatibility.py``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interop.differences import Difference

TESTS = Path(__file__).parents[2] / "tests"

HEAD = """\
# What differs from TorchX

Both are given the same inputs, thousands of them made up, and the values, or the kinds of the errors, are compared:
torchx-tui with `torchx-nightly` 2026.10.26. They are equal but for what this page lists: a test fails where something
else differs, and where something listed differs no more. An *upstream fault* is where TorchX goes wrong, an *addition*
what it refuses or passes over and has a meaning here, a *generation* what its own releases do in different ways. What
schedulers are sent is in [docker.md](../docker.md) and [kubernetes.md](../kubernetes.md). Written by
`python docs/reference/compatibility.py` from `tests/interop/differences.toml`.

A case is one comparison. The counts are those of the last `make oracle`, rounded down: it tries all cases and writes
the counts to `tests/interop/counted.json`, with a hash of what is compared; continuous integration runs it when that
hash holds no longer. `make test` tries about one case of fifteen, and every difference that this page has. *Differed*
are the cases that an entry of the table explains: none is left without.
"""


def page() -> str:
    """Return the page: how many differences each area has, then each of them."""
    differences = _differences()
    areas = {
        area: [one for one in differences if one.area == area] for area in dict.fromkeys(o.area for o in differences)
    }
    counted = json.loads((TESTS / "interop" / "counted.json").read_text(encoding="utf-8"))["areas"]
    counts = [_row("area", "cases", "differed", "unexplained", "entries"), _row(*["---"] * 5)]
    counts += [_count_row(area, counted[area], len(entries)) for area, entries in areas.items()]
    total = {key: sum(_rounded_down(counted[area][key]) for area in areas) for key in ("cases", "differed")}
    counts.append(_count_row("all", total, len(differences)))
    return "\n".join([HEAD, *counts, "", *(_section(area, entries) for area, entries in areas.items())])


def _differences() -> list[Difference]:
    sys.path.insert(0, str(TESTS))
    try:
        from interop.differences import DIFFERENCES
    finally:
        sys.path.remove(str(TESTS))
    return DIFFERENCES


def _rounded_down(number: int) -> int:
    """Return a number with its first two digits: other releases of hypothesis make a few cases more or fewer."""
    unit = 10 ** max(0, len(str(number)) - 2)
    return number // unit * unit


def _count_row(area: str, counted: dict[str, int], entries: int) -> str:
    numbers = [f"{_rounded_down(counted[key]):,}" for key in ("cases", "differed")]
    return _row(area, *numbers, "0", str(entries))


def _section(area: str, entries: list[Difference]) -> str:
    titles = [_row("difference", "TorchX", "torchx-tui", "why", "kind"), _row(*["---"] * 5)]
    rows = [_row(entry.name, entry.theirs, entry.ours, entry.why, entry.kind) for entry in entries]
    return "\n".join([f"## {area.capitalize()}", "", *titles, *rows, ""])


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page(), encoding="utf-8")
