"""How much of each stream is in a combined file without an index, such as TorchX writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .log_file import LogFile, Readable

# Larger files would take seconds, and their content memory.
_MAX_BYTES = 64 << 20
# Equal lines of both streams do not tell which was which: with more than so many possible splits it is given up.
_MAX_SPLITS = 256
# Up to so many bytes are assigned one by one, where whole lines cannot be assigned.
_MAX_BYTES_SINGLY = 1 << 18


def copied_lengths(combined: Readable, streams: Mapping[str, Path | None], size: int) -> dict[str, int] | None:
    """Count the bytes of each stream in the first ``size`` bytes of a combined file, by comparing contents.

    Args:
        combined: the file to which both streams were copied piece by piece, in any order.
        streams: the files of stdout, ``o``, and stderr, ``e``.
        size: how many bytes of the combined file are examined.

    Returns:
        the bytes by the stream's letter; None where they cannot be told apart.
    """
    files = {letter: LogFile(path) for letter, path in streams.items() if path is not None}
    try:
        states = {letter: file.stat() for letter, file in files.items()}
        lengths = {letter: state.size if state else 0 for letter, state in states.items()}
        if sum(lengths.values()) == size:
            return {"o": 0, "e": 0, **lengths}
        if size > _MAX_BYTES:
            return None
        data = {letter: file.read(0, size) for letter, file in files.items()}
    finally:
        for file in files.values():
            file.close()
    out = _length_of_out(combined.read(0, size), data.get("o", b""), data.get("e", b""))
    return None if out is None else {"o": out, "e": size - out}


def _length_of_out(combined: bytes, out: bytes, err: bytes) -> int | None:
    """Count the bytes of ``combined`` that are the beginning of ``out``; the others are the beginning of ``err``."""
    lengths = _possible_lengths(combined.splitlines(keepends=True), out, err)
    if not lengths and len(combined) <= _MAX_BYTES_SINGLY:
        lengths = _possible_lengths([combined[at : at + 1] for at in range(len(combined))], out, err)
    return max(lengths) if lengths else None


def _possible_lengths(pieces: list[bytes], out: bytes, err: bytes) -> set[int]:
    """List the possible lengths of ``out`` in the pieces; none if the pieces fit no way, or too many ways."""
    lengths, at = {0}, 0
    for piece in pieces:
        after = _step(lengths, at, piece, out, err)
        if not after:
            # The copied piece ended within this line.
            after = lengths
            for place in range(len(piece)):
                after = _step(after, at + place, piece[place : place + 1], out, err)
        lengths, at = after, at + len(piece)
        if not 0 < len(lengths) <= _MAX_SPLITS:
            return set()
    return lengths


def _step(lengths: set[int], at: int, piece: bytes, out: bytes, err: bytes) -> set[int]:
    """Assign the next piece to either stream: from each possible length of ``out``, list those after the piece."""
    from_out = {length + len(piece) for length in lengths if out.startswith(piece, length)}
    return from_out | {length for length in lengths if err.startswith(piece, at - length)}
