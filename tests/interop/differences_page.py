"""The text of docs/compatibility.md, made from the table of differences; TorchX need not be installed."""

from __future__ import annotations

from collections.abc import Sequence

from interop.differences import DIFFERENCES, Difference

_HEAD = """\
# What differs from TorchX

Both are given the same inputs in one process, thousands of them made up, and the values, or the kinds of the errors,
are compared: torchx-tui with `torchx-nightly` 2026.10.26, in the areas below. They are equal but for what this page
lists: a test fails where something else differs, and where something listed differs no more. An *upstream fault* is
where TorchX goes wrong, an *addition* what it refuses or passes over and has a meaning here, a *generation* what its
own releases do in different ways. What schedulers are sent is in [docker.md](docker.md) and
[kubernetes.md](kubernetes.md). Written by `python docs/compatibility.py` from `tests/interop/differences.py`.
"""


def compatibility_page() -> str:
    """Return the page: how many differences each area has, then each of them."""
    areas = list(dict.fromkeys(entry.area for entry in DIFFERENCES))
    counts = [_row("area", "differences"), _row("---", "---")]
    counts += [_row(area, str(len(_of(area)))) for area in areas]
    counts.append(_row("all", str(len(DIFFERENCES))))
    return "\n".join([_HEAD, *counts, "", *(_section(area) for area in areas)])


def _of(area: str) -> Sequence[Difference]:
    return [entry for entry in DIFFERENCES if entry.area == area]


def _section(area: str) -> str:
    titles = [_row("difference", "TorchX", "torchx-tui", "why", "kind"), _row(*["---"] * 5)]
    rows = [_row(entry.name, entry.theirs, entry.ours, entry.why, entry.kind) for entry in _of(area)]
    return "\n".join([f"## {area.capitalize()}", "", *titles, *rows, ""])


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
