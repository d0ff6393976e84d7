"""Scalars of TensorBoard's event files, without tensorflow, tensorboard or protobuf.

A file is a row of TFRecords: length (u64), its CRC (u32), data, their CRC (u32). The data is an `Event`: 1 wall_time
(double), 2 step, 5 summary; `Summary`: 1 value*; `Value`: 1 tag, 2 simple_value (float), 8 tensor; `TensorProto`: 1
dtype, 4 tensor_content, 5 float_val, 6 double_val. Source: tensorflow/core/util/event.proto, framework/summary.proto,
framework/tensor.proto, lib/io/record_writer.h. CRCs are not checked.
"""

from __future__ import annotations

import struct

from .points import ForeignFileError, GrowingFile, Point
from .protobuf import BYTES, FIXED32, FIXED64, VARINT, Message, fields, read_double, read_float, read_message

_LENGTH = struct.Struct("<Q").unpack_from
_HEAD, _FOOT = 12, 4
_LONGEST_RECORD = 1 << 30
# Images and histograms have longer summaries than scalars.
_LONGEST_SUMMARY = 65_536
_FLOAT, _DOUBLE = 1, 2
_CONTENT = {(_FLOAT, 4): read_float, (_DOUBLE, 8): read_double}


class EventFile(GrowingFile):
    """One event file."""

    def _parse(self, data: bytes) -> tuple[list[Point], int]:
        points: list[Point] = []
        at, size = 0, len(data)
        while at + _HEAD <= size:
            (length,) = _LENGTH(data, at)
            if length > _LONGEST_RECORD:
                raise ForeignFileError("it is not an event file, or is broken")
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
    event = read_message(data, start, end)
    begin, stop = event.get((5, BYTES), (0, 0))
    if stop - begin > _LONGEST_SUMMARY:
        return []
    step = event.get((2, VARINT), 0)
    step -= (step >> 63) << 64  # a negative one in two's complement
    wall_time = read_double(data, event[1, FIXED64]) if (1, FIXED64) in event else 0.0
    points = []
    for number, wire, place in fields(data, begin, stop):
        if (number, wire) == (1, BYTES):
            value = read_message(data, *place)
            tag, scalar = _text(data, value.get((1, BYTES), (0, 0))), _scalar(data, value)
            if tag and scalar is not None:
                points.append(Point(tag, float(step), scalar, wall_time))
    return points


def _text(data: bytes, place: tuple[int, int]) -> str:
    return data[slice(*place)].decode(errors="replace")


def _scalar(data: bytes, value: Message) -> float | None:
    """Return a simple value, or that of a tensor with one element, as TensorFlow 2 writes them; None for others."""
    if (2, FIXED32) in value:
        return read_float(data, value[2, FIXED32])
    tensor = read_message(data, *value.get((8, BYTES), (0, 0)))
    for number, wire, read in ((5, FIXED32, read_float), (6, FIXED64, read_double)):
        if (number, wire) in tensor:
            return read(data, tensor[number, wire])
        if (number, BYTES) in tensor:
            return read(data, tensor[number, BYTES][0])
    begin, stop = tensor.get((4, BYTES), (0, 0))
    read = _CONTENT.get((tensor.get((1, VARINT), _FLOAT), stop - begin))
    return read(data, begin) if read else None
