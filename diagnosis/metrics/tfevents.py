"""Scalars of TensorBoard's event files, without tensorflow, tensorboard or protobuf.

A file is a row of TFRecords: length (u64), its CRC (u32), data, their CRC (u32). The data is an `Event`: 1 wall_time
(double), 2 step, 5 summary; `Summary`: 1 value*; `Value`: 1 tag, 2 simple_value (float), 8 tensor; `TensorProto`: 1
dtype, 4 tensor_content, 5 float_val, 6 double_val. Source: tensorflow/core/util/event.proto, framework/summary.proto,
framework/tensor.proto, lib/io/record_writer.h. CRCs are not checked.
"""

from __future__ import annotations

import struct

from .points import ForeignFileError, GrowingFile, Point
from .protobuf import BYTES, FIXED, FIXED32, FIXED64, VARINT, Message, fields, read_message

_LENGTH = struct.Struct("<Q").unpack_from
_HEAD, _FOOT = 12, 4
_LONGEST_RECORD = 1 << 30
# Images and histograms have longer summaries than scalars.
_LONGEST_SUMMARY = 65_536
_FLOAT, _DOUBLE = 1, 2
_WIRES = {_FLOAT: FIXED32, _DOUBLE: FIXED64}


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
                points += _scalars(data[start:end])
            except (ValueError, struct.error):
                pass  # one bad record costs its own values
            at = end + _FOOT
        return points, at


def _scalars(record: bytes) -> list[Point]:
    event = read_message(record)
    summary = event.get((5, BYTES), b"")
    if len(summary) > _LONGEST_SUMMARY:
        return []
    step = event.get((2, VARINT), 0)
    step -= (step >> 63) << 64  # a negative one in two's complement
    points = []
    for number, wire, item in fields(summary):
        if (number, wire) == (1, BYTES):
            value = read_message(item)
            tag, scalar = value.get((1, BYTES), b"").decode(errors="replace"), _scalar(value)
            if tag and scalar is not None:
                points.append(Point(tag, float(step), scalar, event.get((1, FIXED64), 0.0)))
    return points


def _scalar(value: Message) -> float | None:
    """Return a simple value, or that of a tensor with one element, as TensorFlow 2 writes them; None for others."""
    if (2, FIXED32) in value:
        return value[2, FIXED32]
    tensor = read_message(value.get((8, BYTES), b""))
    for number, wire in ((5, FIXED32), (6, FIXED64)):
        if (number, wire) in tensor:
            return tensor[number, wire]
        if (number, BYTES) in tensor:
            return FIXED[wire].unpack_from(tensor[number, BYTES])[0]
    content = tensor.get((4, BYTES), b"")
    wire = _WIRES.get(tensor.get((1, VARINT), _FLOAT))
    return FIXED[wire].unpack(content)[0] if wire and len(content) == FIXED[wire].size else None
