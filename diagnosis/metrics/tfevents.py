"""Scalars of TensorBoard's event files, without tensorflow, tensorboard or protobuf.

A file is a row of TFRecords: length (u64), its CRC (u32), data, their CRC (u32). The data is an `Event`: 1 wall_time
(double), 2 step, 5 summary; `Summary`: 1 value*; `Value`: 1 tag, 2 simple_value (float), 8 tensor; `TensorProto`: 1
dtype, 4 tensor_content, 5 float_val, 6 double_val. Source: tensorflow/core/util/event.proto, framework/summary.proto,
framework/tensor.proto, lib/io/record_writer.h. CRCs are not checked.
"""

from __future__ import annotations

import struct
from pathlib import Path

from .points import ForeignFileError, GrowingFile, Point
from .protobuf import BYTES, FIXED32, FIXED64, VARINT, fields, read_double, read_float

_LENGTH = struct.Struct("<Q").unpack_from
_HEAD, _FOOT = 12, 4
_LONGEST_RECORD = 1 << 30
# Images and histograms have longer summaries than scalars.
_LONGEST_SUMMARY = 65_536
_FLOAT, _DOUBLE = 1, 2
# No writer makes empty records. A sparse file may have 100 GB of them.
_MOST_EMPTY_RECORDS = 1_000


class EventFile(GrowingFile):
    """One event file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._empty_records = 0

    def _restart(self) -> None:
        self._empty_records = 0

    def _parse(self, data: bytes) -> tuple[list[Point], int]:
        points: list[Point] = []
        at, size = 0, len(data)
        while at + _HEAD <= size:
            (length,) = _LENGTH(data, at)
            if length > _LONGEST_RECORD:
                raise ForeignFileError("it is not an event file, or is broken")
            self._empty_records += not length
            if self._empty_records > _MOST_EMPTY_RECORDS:
                raise ForeignFileError(f"it has more than {_MOST_EMPTY_RECORDS:,} empty records")
            start, end = at + _HEAD, at + _HEAD + length
            if end + _FOOT > size:
                # A long record is passed over, unless nothing of it is read yet.
                return (points, end + _FOOT) if at == 0 and length > _LONGEST_SUMMARY else (points, at)
            try:
                points += _scalars(data, start, end)
            except (ValueError, struct.error):
                pass  # one bad record costs its own values
            at = end + _FOOT
        return points, at


def _scalars(data: bytes, start: int, end: int) -> list[Point]:
    wall_time, step, summary = 0.0, 0, None
    for number, wire, value in fields(data, start, end):
        if number == 1 and wire == FIXED64:
            wall_time = read_double(data, value)
        elif number == 2 and wire == VARINT:
            step = value if value < 1 << 63 else value - (1 << 64)
        elif number == 5 and wire == BYTES:
            summary = value
    if summary is None or summary[1] - summary[0] > _LONGEST_SUMMARY:
        return []
    points = []
    for number, wire, place in fields(data, *summary):
        if number == 1 and wire == BYTES:
            tag, scalar = _value(data, *place)
            if tag and scalar is not None:
                points.append(Point(tag, float(step), scalar, wall_time))
    return points


def _value(data: bytes, start: int, end: int) -> tuple[str, float | None]:
    tag, scalar = "", None
    for number, wire, value in fields(data, start, end):
        if number == 1 and wire == BYTES:
            tag = data[value[0] : value[1]].decode(errors="replace")
        elif number == 2 and wire == FIXED32:
            scalar = read_float(data, value)
        elif number == 8 and wire == BYTES:
            scalar = _tensor(data, *value)
    return tag, scalar


def _tensor(data: bytes, start: int, end: int) -> float | None:
    """Return the value of a tensor that is a scalar, as TensorFlow 2 writes them; None for others."""
    dtype, content = _FLOAT, None
    for number, wire, value in fields(data, start, end):
        if number == 1 and wire == VARINT:
            dtype = value
        elif number == 4 and wire == BYTES and value[1] > value[0]:
            content = value
        elif number == 5 and wire in (FIXED32, BYTES):
            return read_float(data, value[0] if wire == BYTES else value)
        elif number == 6 and wire in (FIXED64, BYTES):
            return read_double(data, value[0] if wire == BYTES else value)
    if content is None or content[1] - content[0] != {_FLOAT: 4, _DOUBLE: 8}.get(dtype, 0):
        return None
    return read_double(data, content[0]) if dtype == _DOUBLE else read_float(data, content[0])
