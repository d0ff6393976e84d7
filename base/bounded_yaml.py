"""YAML whose aliases cannot fill the memory."""

from __future__ import annotations

import math
from typing import Any

MAX_VALUES = 100_000
"""Values of a document, each alias counted as what it stands for: a file of 1 kB can have billions."""


def load_yaml(text: str | bytes, loader: Any = None) -> Any:
    """Return the data of a YAML document.

    Args:
        text: the document.
        loader: a safe loader; PyYAML's own if None.

    Raises:
        yaml.YAMLError: it is malformed, has more than `MAX_VALUES` values, or contains itself.
    """
    import yaml

    made = (loader or yaml.SafeLoader)(text)
    try:
        node = made.get_single_node()
        if node is None:
            return None
        # Merge keys (<<) copy what an alias stands for, so it is counted before data is made of it.
        count = _count(node, {})
        if count > MAX_VALUES:
            problem = "it contains itself" if count == math.inf else f"it has more than {MAX_VALUES:,} values"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return made.construct_document(node)
    finally:
        made.dispose()


def _count(node: Any, known: dict[int, float]) -> float:
    """Return how many values a node has; infinity if it contains itself."""
    if not isinstance(node.value, list):
        return 1
    if id(node) not in known:
        known[id(node)] = math.inf
        parts = [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]
        known[id(node)] = 1 + sum(_count(part, known) for part in parts)
    return known[id(node)]
