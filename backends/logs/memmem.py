"""The C library's search for a text of common letters, several times as fast as `bytes.find`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any


def finder(data: bytes, text: bytes) -> Callable[[int], int]:
    """Return what finds the next place of ``text`` in ``data``, from an offset on; -1 if there is none.

    The interpreter lock is released meanwhile.
    """
    memmem = _memmem()
    if memmem is None:
        return lambda start: data.find(text, start)
    held = ctypes.c_char_p(data)
    base = ctypes.cast(held, ctypes.c_void_p).value or 0
    end, size = base + len(data), len(text)

    def find(start: int, held: ctypes.c_char_p = held) -> int:
        found = memmem(base + start, end - base - start, text, size)
        return -1 if found is None else found - base

    return find


@lru_cache(maxsize=1)
def _memmem() -> Any:
    try:
        function = ctypes.CDLL(None).memmem
    except (OSError, AttributeError, TypeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    return function
