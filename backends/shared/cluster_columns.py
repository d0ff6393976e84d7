"""The columns in which the shell and the dashboard show what of a cluster is free."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...base.durations import duration
from ...logs.text.sanitize import plain
from ..types import ClusterNode, ClusterPool, ClusterStatus, StartEstimate

_GB = 1 << 30


class Column(NamedTuple):
    """A column.

    Attributes:
        label: its heading.
        cell: returns the text of a pool or node.
        is_right: whether it is aligned to the right.
        rank: columns of the largest rank are left out first where there is no room.
    """

    label: str
    cell: Callable[[Any], str]
    is_right: bool = False
    rank: int = 0


class Table(NamedTuple):
    """Rows of cells; columns in which all cells are empty are left out.

    Attributes:
        labels: the headings.
        ranks: of the columns, see `Column`.
        widths: of the columns, in characters.
        rows: the cells of each row; those of a column to the right are padded.
    """

    labels: Sequence[str]
    ranks: Sequence[int]
    widths: Sequence[int]
    rows: Sequence[tuple[str, ...]]


def make_table(columns: Sequence[Column], items: Sequence[Any]) -> Table:
    """Return the table of pools or nodes, safe for a terminal."""
    kept, labels, widths, texts = [], [], [], []
    for column in columns:
        cells = [plain(column.cell(item)) for item in items]
        if any(cells):
            width = max(len(column.label), *map(len, cells))
            pad = width if column.is_right else 0
            kept.append(column)
            labels.append(column.label.rjust(pad))
            widths.append(width)
            texts.append([cell.rjust(pad) for cell in cells])
    return Table(labels, [column.rank for column in kept], widths, [*zip(*texts, strict=True)])


def pool_table(status: ClusterStatus) -> Table:
    """Return the table of all pools."""
    kinds = "/".join(dict.fromkeys(pool.kind.upper() for pool in status.pools))
    return make_table([Column(kinds, lambda pool: pool.name), *_POOL_COLUMNS], status.pools)


def node_table(nodes: Sequence[ClusterNode]) -> Table:
    """Return the table of nodes."""
    return make_table(_NODE_COLUMNS, nodes)


def has_room(item: ClusterPool | ClusterNode) -> bool:
    """Return whether a job could start there now: there are free CPUs, and a free GPU where there are any."""
    is_open = item.is_open if isinstance(item, ClusterPool) else item.is_usable
    return is_open and item.cpus_free > 0 and (not item.gpus or any(free for free, _ in item.gpus.values()))


def start_words(estimate: StartEstimate | None, now: float) -> str:
    """Return when a small job would start, or why it would not; empty for no estimate."""
    if estimate is None or estimate.start is None:
        return estimate.fault if estimate is not None else ""
    seconds = estimate.start - now
    return "now" if seconds < 60 else f"in {duration(seconds)}"


def _share(free: int, total: int) -> str:
    return f"{free:,}/{total:,}" if total else ""


def _gpus(item: ClusterPool | ClusterNode) -> str:
    kinds: Mapping[str, tuple[int, int]] = item.gpus
    return ", ".join(f"{_share(*counts)} {kind}" for kind, counts in kinds.items() if counts[1])


def _memory(item: ClusterPool | ClusterNode) -> str:
    if not item.memory:
        return ""
    digits = 0 if item.memory >= 100 * _GB else 1
    return f"{item.memory_free / _GB:,.{digits}f}/{item.memory / _GB:,.{digits}f} GB"


def _some(number: int) -> str:
    return f"{number:,}" if number else ""


_POOL_COLUMNS = (
    Column("GPUS", _gpus),
    Column("NODES", lambda pool: _share(pool.nodes_free, pool.nodes), is_right=True),
    Column("MIXED", lambda pool: _some(pool.nodes_mixed), is_right=True, rank=3),
    Column("DOWN", lambda pool: _some(pool.nodes_down), is_right=True, rank=2),
    Column("CPUS", lambda pool: _share(pool.cpus_free, pool.cpus), is_right=True, rank=1),
    Column("MEMORY", _memory, is_right=True, rank=4),
    Column("LIMIT", lambda pool: "" if pool.limit is None else duration(pool.limit), is_right=True, rank=1),
    Column("WAITING", lambda pool: _some(pool.waiting), is_right=True),
    Column("NOTE", lambda pool: pool.note),
    Column("STARTS", lambda pool: start_words(pool.estimate, time.time())),
)
_NODE_COLUMNS = (
    Column("NODE", lambda node: node.name),
    Column("STATE", lambda node: node.state),
    Column("GPUS", _gpus),
    Column("CPUS", lambda node: _share(node.cpus_free, node.cpus), is_right=True),
    Column("MEMORY", _memory, is_right=True, rank=1),
    Column("REASON", lambda node: node.reason),
    Column("USERS", lambda node: " ".join(node.users)),
)
