"""Names of ranks in sentences."""

from __future__ import annotations

from collections.abc import Iterable

_MAX_SPANS = 8


def name_ranks(ranks: Iterable[int]) -> str:
    """Name ranks, with consecutive ones as a range: ``rank 3``, ``ranks 0-6, 8-15``."""
    numbers = list_ranks(ranks)
    return ("rank " if numbers.isdigit() else "ranks ") + numbers


def list_ranks(ranks: Iterable[int]) -> str:
    """List ranks, with consecutive ones as a range: ``3``, ``0-6, 8-15``."""
    spans: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    more = f" and {len(texts) - _MAX_SPANS} more" if len(texts) > _MAX_SPANS else ""
    return ", ".join(texts[:_MAX_SPANS]) + more
