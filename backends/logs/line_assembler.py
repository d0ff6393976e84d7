"""Makes lines of the records of a log."""

from __future__ import annotations

from dataclasses import dataclass, field

from .stream import Record


@dataclass
class LineAssembler:
    """Makes whole lines of the records of both streams, however they were cut."""

    _parts: dict[str, list[bytes]] = field(default_factory=dict)
    _began: dict[str, float | None] = field(default_factory=dict)

    def add(self, record: Record) -> list[tuple[float | None, bytes]]:
        """Return the lines that end in a record, each with the time of its first byte."""
        lines = []
        start = 0
        while start < len(record.data):
            parts = self._parts.setdefault(record.stream, [])
            if not parts:
                self._began[record.stream] = record.time
            end = record.data.find(b"\n", start) + 1
            parts.append(record.data[start : end or None])
            if end == 0:
                break
            lines.append((self._began[record.stream], b"".join(parts)))
            parts.clear()
            start = end
        return lines

    def rest(self) -> list[tuple[float | None, bytes]]:
        """Return the last lines, which have no end."""
        rest = [(self._began[stream], b"".join(parts)) for stream, parts in self._parts.items() if parts]
        self._parts.clear()
        return rest
