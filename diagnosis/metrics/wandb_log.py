"""The history of a `.wandb` file, which runs of Weights & Biases write beside the job, online ones too.

After a head of 7 bytes (``:W&B``, 0xBEE1, version 0) come blocks of 32 KiB as in LevelDB's log: CRC (u32), length
(u16), type (u8: 1 full, 2 first, 3 middle, 4 last). The data is a `Record`: 2 history; `HistoryRecord`: 1 item*, 2
step; `HistoryItem`: 1 key, 2 nested_key*, 16 value_json. Source: wandb/proto/wandb_internal.proto,
wandb/sdk/internal/datastore.py. CRCs are not checked.
"""

from __future__ import annotations

import json
import math
import struct

from .points import ForeignFileError, GrowingFile, Point, to_number
from .protobuf import BYTES, VARINT, fields, read_message

_MAGIC = b":W&B"
_HEAD = 7
_BLOCK = 32_768
_RECORD = struct.Struct("<IHB").unpack_from
_RECORD_HEAD = 7
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_LONGEST_RECORD = 32 << 20
_STEP, _TIME = "_step", "_timestamp"


class WandbFile(GrowingFile):
    """One `.wandb` file."""

    def _begin(self) -> None:
        super()._begin()
        self._part = bytearray()

    def _parse(self, data: bytes) -> tuple[list[Point], int]:
        at, points = 0, []
        if self._offset == 0:
            if len(data) < _HEAD:
                return [], 0
            if not data.startswith(_MAGIC):
                raise ForeignFileError("it is not a .wandb file")
            at = _HEAD
        while at + _RECORD_HEAD <= len(data):
            left = _BLOCK - (self._offset + at) % _BLOCK
            _, length, kind = _RECORD(data, at)
            if left < _RECORD_HEAD or (kind == 0 and length == 0):
                at += left
                continue
            end = at + _RECORD_HEAD + length
            if end > len(data):
                break
            record = self._whole(data[at + _RECORD_HEAD : end], kind)
            if record is not None:
                try:
                    points += _history(record)
                except (ValueError, struct.error):
                    pass  # one bad record costs its own values
            at = end
        return points, min(at, len(data))

    def _whole(self, piece: bytes, kind: int) -> bytes | None:
        """Return a record that is whole with this piece."""
        if kind == _FULL:
            return piece
        if kind == _FIRST:
            self._part = bytearray(piece)
        elif kind in (_MIDDLE, _LAST) and len(self._part) < _LONGEST_RECORD:
            self._part += piece
            if kind == _LAST:
                record, self._part = bytes(self._part), bytearray()
                return record
        return None


def _history(record: bytes) -> list[Point]:
    points: list[Point] = []
    for number, wire, history in fields(record):
        if (number, wire) != (2, BYTES):
            continue
        row: dict[str, float] = {}
        step = 0.0
        for item, item_wire, value in fields(history):
            if (item, item_wire) == (1, BYTES):
                row.update(_item(value))
            elif (item, item_wire) == (2, BYTES):
                step = float(read_message(value).get((1, VARINT), 0))
        step, time = row.pop(_STEP, step), row.pop(_TIME, math.nan)
        points += [Point(name, step, scalar, time) for name, scalar in row.items() if not name.startswith("_")]
    return points


def _item(item: bytes) -> dict[str, float]:
    texts = [(number, value.decode(errors="replace")) for number, wire, value in fields(item) if wire == BYTES]
    try:
        scalar = to_number(json.loads(dict(texts).get(16, "null")))
    except (ValueError, RecursionError):
        return {}
    return {} if scalar is None else {"/".join(text for number, text in texts if number in (1, 2)): scalar}
