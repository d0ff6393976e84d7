"""Decoded data checked against annotated types, in any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

_lock = threading.RLock()


def convert(data: Any, kind: Any, dec_hook: Callable[[Any, Any], Any] | None = None) -> Any:
    """Convert plain data to a type as `msgspec.convert` does, which crashes if two threads meet a type at once.

    At the first use of a class it fills in a description of it (0.22), which another thread takes as it is.

    Args:
        data: what JSON, TOML and the like were decoded to.
        kind: the type, such as a dataclass, a TypedDict or ``list[int]``.
        dec_hook: makes a value of a type that msgspec does not know, from the type and the plain data.

    Raises:
        msgspec.ValidationError: the data is not of the type; a ValueError, whose message says where.
    """
    # A component that imports a backend may run in a Python that has no msgspec.
    import msgspec

    with _lock:
        return msgspec.convert(data, kind, dec_hook=dec_hook)
