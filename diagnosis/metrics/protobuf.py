"""The fields of a protocol buffer message, read in place.

Source: https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_float = struct.Struct("<f").unpack_from
_double = struct.Struct("<d").unpack_from
Message = dict[tuple[int, int], Any]
"""The fields of a message by number and wire type; the last one of repeated fields."""


def fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, Any]]:
    """Yield number, wire type and value of each field of a message.

    The value of a varint is a number, that of bytes their start and end, others are their start.

    Raises:
        ValueError: it is not a message, or goes beyond its end.
    """
    while start < end:
        key, start = _varint(data, start, end)
        wire = key & 7
        value: Any = start
        if wire == VARINT:
            value, start = _varint(data, start, end)
        elif wire == FIXED64:
            start += 8
        elif wire == BYTES:
            size, start = _varint(data, start, end)
            value = (start, start + size)
            start += size
        elif wire == FIXED32:
            start += 4
        else:
            raise ValueError(f"wire type {wire}")
        if start > end:
            raise ValueError("a field goes beyond its message")
        yield key >> 3, wire, value


def read_message(data: bytes, start: int, end: int) -> Message:
    """Return the fields of a message; see `fields`."""
    return {(number, wire): value for number, wire, value in fields(data, start, end)}


def read_float(data: bytes, start: int) -> float:
    """Return the 32-bit float at a position."""
    return _float(data, start)[0]


def read_double(data: bytes, start: int) -> float:
    """Return the 64-bit float at a position."""
    return _double(data, start)[0]


def _varint(data: bytes, start: int, end: int) -> tuple[int, int]:
    result = shift = 0
    while start < end and shift < 70:
        byte = data[start]
        start += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result, start
        shift += 7
    raise ValueError("a number has no end")
