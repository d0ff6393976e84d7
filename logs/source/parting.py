"""How much of each stream is in a combined file that has no index, as TorchX's have none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .log_file import LogFile, Readable

# More would be held in memory, and takes seconds.
_MOST_BYTES = 64 << 20
# Equal lines of both streams leave open which was which; more than so many ways are not followed.
_MOST_WAYS = 256
# Up to so many bytes are parted one by one, where lines alone lead nowhere.
_MOST_PARTED = 1 << 18


def copied_lengths(combined: Readable, streams: Mapping[str, Path | None], size: int) -> dict[str, int] | None:
    """Return how many of the first ``size`` bytes came from each stream, by content.

    Args:
        combined: the file to which both streams were copied piece by piece, in any order.
        streams: the files of stdout, ``o``, and stderr, ``e``.
        size: how many bytes of the combined file count.

    Returns:
        the bytes by the stream's letter; None where that cannot be told.
    """
    files = {letter: LogFile(path) for letter, path in streams.items() if path is not None}
    try:
        states = {letter: file.look() for letter, file in files.items()}
        lengths = {letter: state.size if state else 0 for letter, state in states.items()}
        if sum(lengths.values()) == size:
            return {"o": 0, "e": 0, **lengths}
        if size > _MOST_BYTES:
            return None
        data = {letter: file.read(0, size) for letter, file in files.items()}
    finally:
        for file in files.values():
            file.close()
    out = _out_bytes(combined.read(0, size), data.get("o", b""), data.get("e", b""))
    return None if out is None else {"o": out, "e": size - out}


def _out_bytes(combined: bytes, out: bytes, err: bytes) -> int | None:
    """Return how many bytes of ``combined`` are the beginning of ``out``, the others being that of ``err``."""
    ways = _ways(combined.splitlines(keepends=True), out, err)
    if not ways and len(combined) <= _MOST_PARTED:
        ways = _ways([combined[at : at + 1] for at in range(len(combined))], out, err)
    return max(ways) if ways else None


def _ways(pieces: list[bytes], out: bytes, err: bytes) -> set[int]:
    """Return how many bytes of ``out`` may be in the pieces together; nothing where there is no way, or too many."""
    ways, at = {0}, 0
    for piece in pieces:
        after = _step(ways, at, piece, out, err)
        if not after:
            # A copy ended within this line.
            after = ways
            for place in range(len(piece)):
                after = _step(after, at + place, piece[place : place + 1], out, err)
        ways, at = after, at + len(piece)
        if not 0 < len(ways) <= _MOST_WAYS:
            return set()
    return ways


def _step(ways: set[int], at: int, piece: bytes, out: bytes, err: bytes) -> set[int]:
    """Go on by a piece that is the next of one stream: from each number of bytes of ``out`` to those after it."""
    from_out = {way + len(piece) for way in ways if out.startswith(piece, way)}
    return from_out | {way for way in ways if err.startswith(piece, at - way)}
