"""The text of docs/reference/compatibility.md, made from the table of differences; TorchX need not be installed."""

from __future__ import annotations

from collections.abc import Sequence

from interop.differences import DIFFERENCES, Difference
from support.oracle_counts import read_counted

_HEAD = """\
# What differs from TorchX

Both are given the same inputs, thousands of them made up, and the values, or the kinds of the errors, are compared:
torchx-tui with `torchx-nightly` 2026.10.26 in one process, in the areas below, and with `torchx` 0.7.0 in a process of
its own. They are equal but for what this page lists: a test fails where something else differs, and where something
listed differs no more. An *upstream fault* is where TorchX goes wrong, an *addition* what it refuses or passes over and
has a meaning here, a *generation* what its own releases do in different ways. What schedulers are sent is in
[docker.md](../docker.md) and [kubernetes.md](../kubernetes.md). Written by `python docs/reference/compatibility.py`
from `tests/interop/differences.py`.

A case is one comparison. The counts are those of the last `make oracle`, rounded down: it tries all cases and writes
the counts to `tests/interop/counted.json`, with a hash of what is compared; continuous integration runs it when that
hash holds no longer. `make test` tries about one case of fifteen, with `torchx-nightly` alone, and every difference
that this page has of it. *Differed* are the cases that an entry of the table explains: none is left without.
"""


def compatibility_page() -> str:
    """Return the page: how many differences each area has, then each of them."""
    areas = list(dict.fromkeys(entry.area for entry in DIFFERENCES))
    counted = read_counted()["areas"]
    counts = [_row("area", "cases", "differed", "unexplained", "entries"), _row(*["---"] * 5)]
    counts += [_count_row(area, counted[area], len(_of(area))) for area in areas]
    total = {key: sum(rounded_down(counted[area][key]) for area in areas) for key in ("cases", "differed")}
    counts.append(_count_row("all", total, len(DIFFERENCES)))
    return "\n".join([_HEAD, *counts, "", *(_section(area) for area in areas)])


def rounded_down(number: int) -> int:
    """Return a number with its first two digits: other releases of hypothesis make a few cases more or fewer."""
    unit = 10 ** max(0, len(str(number)) - 2)
    return number // unit * unit


def _count_row(area: str, counted: dict[str, int], entries: int) -> str:
    numbers = [f"{rounded_down(counted[key]):,}" for key in ("cases", "differed")]
    return _row(area, *numbers, "0", str(entries))


def _of(area: str) -> Sequence[Difference]:
    return [entry for entry in DIFFERENCES if entry.area == area]


def _section(area: str) -> str:
    titles = [_row("difference", "TorchX", "torchx-tui", "why", "kind"), _row(*["---"] * 5)]
    rows = [_row(entry.name, entry.theirs, entry.ours, entry.why, entry.kind) for entry in _of(area)]
    return "\n".join([f"## {area.capitalize()}", "", *titles, *rows, ""])


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
