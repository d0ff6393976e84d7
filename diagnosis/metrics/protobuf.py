"""The fields of a protocol buffer message.

Source: https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
FIXED = {FIXED32: struct.Struct("<f"), FIXED64: struct.Struct("<d")}
"""The formats of fields of fixed size: the messages that are read here have floats in them."""
Message = dict[tuple[int, int], Any]
"""The fields of a message by number and wire type; the last one of repeated fields."""
_LONGEST_VARINT = 10


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yield number, wire type and value of each field of a message: an int, a float or bytes.

    Raises:
        ValueError: it is not a message, or goes beyond its end.
        struct.error: a field of fixed size goes beyond its end.
    """
    start = 0
    while start < len(data):
        key, start = _varint(data, start)
        wire = key & 7
        if wire == VARINT:
            value, start = _varint(data, start)
        elif wire == BYTES:
            size, start = _varint(data, start)
            value = data[start : start + size]
            start += size
        elif wire in FIXED:
            (value,) = FIXED[wire].unpack_from(data, start)
            start += FIXED[wire].size
        else:
            raise ValueError(f"wire type {wire}")
        if start > len(data):
            raise ValueError("a field goes beyond its message")
        yield key >> 3, wire, value


def read_message(data: bytes) -> Message:
    """Return the fields of a message; see `fields`."""
    return {(number, wire): value for number, wire, value in fields(data)}


def _varint(data: bytes, start: int) -> tuple[int, int]:
    """Return the number at a position, and where it ends."""
    result = 0
    for count, byte in enumerate(data[start : start + _LONGEST_VARINT]):
        result |= (byte & 127) << 7 * count
        if byte < 128:
            return result, start + count + 1
    raise ValueError("a number has no end")
