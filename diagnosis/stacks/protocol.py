"""Parser of the probe's output, JSON objects of which nothing is trusted, and of snapshots that were kept.

``process``: a process and its stack, as text of faulthandler or JSON of py-spy. ``recorder``: the flight recorder of a
rank. ``source``: lines of a file. ``end``: the last object.
"""

from __future__ import annotations

import zlib
from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from types import MappingProxyType
from typing import Any

from ...base.typed_data import convert
from ...base.validation import decode_json
from ...logs.text.sanitize import plain
from ..frames import parse_faulthandler, parse_pyspy
from ..recorder.dump import Dump, DumpError, parse_dump
from .snapshot import ProcessStack, ReplicaReply, SnapshotRecord, StackSnapshot

MAX_RANK = 1 << 17
_FORMAT = 1
_MAX_LINES = 20_000
# PyTorch keeps 2000 entries of some hundred bytes.
_MAX_DUMP_BYTES = 64 << 20


def parse_lines(data: bytes) -> tuple[dict[str, Any], ...]:
    """Parse the probe's output, leaving out lines of other programs."""
    lines = []
    for text in data.splitlines()[:_MAX_LINES]:
        with suppress(ValueError):
            lines.append(decode_json(text))
    return tuple(line for line in lines if isinstance(line, dict))


def parse_snapshot(
    handle: str,
    role: str,
    replies: Sequence[ReplicaReply],
    *,
    recorded: Mapping[int, Dump] = MappingProxyType({}),
    has_recorders: bool = True,
    **others: Any,
) -> StackSnapshot:
    """Make a snapshot from the replicas' answers.

    Args:
        handle: the job.
        role: the role.
        replies: the answers.
        recorded: flight recorders that ranks left in files.
        has_recorders: whether to parse the flight recorders, which takes most of the time.
        **others: the attributes of `StackSnapshot` that are not parsed from the answers.
    """
    processes: dict[tuple[str, int, int], ProcessStack] = {}
    dumps: dict[int, Dump] = {}
    recorded_at: dict[int, float] = {}
    sources: dict[str, dict[int, str]] = {}
    faults: dict[int, str] = {}
    sizes: list[int] = []
    for replica, line in [(reply.replica, line) for reply in replies for line in reply.lines]:
        rank = _rank(line.get("rank"))
        if line.get("kind") == "process":
            stack = _process(replica if rank is None else rank, replica, line)
            processes.setdefault((stack.host, stack.pid, stack.rank), stack)
            if (size := _rank(line.get("world"))) is not None:
                sizes.append(size)
        elif line.get("kind") == "recorder" and rank is not None:
            if isinstance(line.get("at"), float):
                recorded_at[rank] = line["at"]
            # Most jobs have no recorder: then there is no way.
            if line.get("way") and has_recorders:
                try:
                    dumps[rank] = parse_dump(_unpack(line.get("data")))
                except DumpError as error:
                    faults[rank] = plain(str(error))
        elif line.get("kind") == "source" and isinstance(line.get("lines"), dict):
            texts = {int(n): str(text) for n, text in line["lines"].items() if str(n).isdigit() and len(str(n)) < 9}
            sources.setdefault(str(line.get("file")), {}).update(texts)
    stacks = sorted(processes.values(), key=lambda stack: (stack.rank, not stack.is_main, stack.pid))
    dumps = {**recorded, **dumps}
    ranks = {*recorded, *(stack.rank for stack in stacks if stack.is_main)}
    sizes = sizes or [reply.replica + 1 for reply in replies if reply.error]
    return StackSnapshot(
        handle=handle,
        role=role,
        replies=tuple(replies),
        world_size=max([*sizes, *(rank + 1 for rank in ranks)], default=len(replies)),
        processes=tuple(stacks),
        dumps=dumps,
        recorded_at=recorded_at,
        sources=sources,
        faults={rank: why for rank, why in faults.items() if rank not in dumps},
        **others,
    )


def to_document(snapshot: StackSnapshot) -> dict[str, Any]:
    """Return a snapshot as JSON; the probe's output is stored unchanged."""
    names = [field.name for field in fields(SnapshotRecord)]
    replies = [asdict(reply) for reply in snapshot.replies]
    return {"format": _FORMAT, **{name: getattr(snapshot, name) for name in names}, "replies": replies}


def from_document(document: Mapping[str, Any], *, has_recorders: bool = True) -> StackSnapshot:
    """Return the snapshot of a document.

    Raises:
        ValueError: the document is malformed.
    """
    record: SnapshotRecord = convert(document, SnapshotRecord)
    return parse_snapshot(**vars(record), has_recorders=has_recorders)


def _process(rank: int, replica: int, line: Mapping[str, Any]) -> ProcessStack:
    def text(name: str) -> str:
        return plain(str(line.get(name) or ""))

    tried, printed = line.get("tried"), line.get("text")
    pairs = [item for item in tried if isinstance(item, list) and len(item) == 2] if isinstance(tried, list) else []
    return ProcessStack(
        rank,
        replica,
        host=text("host"),
        pid=_number(line.get("pid")) or 0,
        is_main=line.get("is_main") is True,
        name=text("name"),
        state=text("state")[:1],
        waits_for=text("waits_for"),
        cpu=_number(line.get("cpu")) or 0,
        way=text("way"),
        tried=tuple((plain(str(way)), plain(str(why))) for way, why in pairs),
        threads=parse_faulthandler(printed) if isinstance(printed, str) else parse_pyspy(line.get("threads")),
    )


def _rank(value: Any) -> int | None:
    """Return a rank or a number of ranks; None if invalid."""
    number = _number(value)
    return number if number is not None and 0 <= number <= MAX_RANK else None


def _number(value: Any) -> int | None:
    if type(value) is int:
        return value if abs(value) < 1 << 53 else None
    return int(value) if isinstance(value, str) and value.isdigit() and len(value) < 10 else None


def _unpack(data: Any) -> bytes:
    """Decompress a dump.

    Raises:
        DumpError: it is damaged or too large.
    """
    try:
        unpack = zlib.decompressobj()
        unpacked = unpack.decompress(b64decode(str(data)), _MAX_DUMP_BYTES)
    except (ValueError, zlib.error) as error:
        raise DumpError(f"it arrived damaged: {error}") from error
    if unpack.unconsumed_tail:
        raise DumpError(f"it has more than {_MAX_DUMP_BYTES >> 20} MB")
    return unpacked
