"""Reads the files of one replica as one log, also after they were rotated or their supervisor died."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ...base.files import path_exists
from .chunks import ChunkIndex, Chunks, WholeFile, stream_lengths
from .file_source import FileRemovedError, FileReplacedError, FileSource
from .log_file import FileState, LogFile
from .replica_log import LETTERS, PollResult, ReplicaLog, StreamName
from .segment import LogSegment

COMBINED_LAG_S = 2.0
"""Bytes that the combined file lacks for longer than this (s) will not be added: the supervisor adds even an unfinished
line about a second after it came.
"""
LAG_CHECK_INTERVAL_S = 1.0
"""Seconds between two checks for bytes that the combined file lacks."""
_STILL_SHOWN = "its lines are shown until this log is closed"


class ReplicaReader:
    """The sources of one replica.

    Args:
        log: where the replica's log is.
        stream: which stream is wanted.
        register: opens a file and returns it with its number.
        say: adds a notice and returns its segment.
        join_s: bytes written to one stream within this time (s) share a time.
    """

    def __init__(
        self,
        log: ReplicaLog,
        stream: StreamName,
        register: Callable[[Path], tuple[LogFile, int]],
        say: Callable[[str], LogSegment],
        *,
        join_s: float = 0.0,
    ) -> None:
        self.log = log
        self._letters = LETTERS[stream]
        self._register = register
        self._say = say
        self._join_s = join_s
        self._indexed = _is_indexed(log)
        self._index_files: list[LogFile] = []
        self._sources = self._make_sources()
        # Only the index says which bytes of the streams' own files are copied already.
        self._follows_combined = self._indexed and any(source.file.path == log.combined for source in self._sources)
        self._lagging_since: float | None = None
        self._lagging_at = 0
        self._next_lag_check = 0.0

    def connect(self) -> None:
        """Do nothing: files need no connection."""

    @property
    def caught_up(self) -> bool:
        """Whether the existing lines can be read; always true for files."""
        return True

    def open(self) -> list[Iterator[LogSegment]]:
        """Start at the end of the files; return the segments before it, the latest first, one iterator a file."""
        older = [source.open() for source in self._sources]
        now = time.time()
        raw = [state for state in self._stream_file_states().values() if state is not None]
        if all(now - state.written_at > COMBINED_LAG_S for state in raw):
            older += self.open_rest()
        return older

    def open_rest(self) -> list[Iterator[LogSegment]]:
        """Return the segments of the streams' own files that the combined one lacks, the latest first."""
        return [source.open() for source in self._switch_to_stream_files()] if self._combined_lags() else []

    def poll(self) -> PollResult:
        """Read what was added since."""
        fresh: list[LogSegment] = []
        grown: list[LogSegment] = []
        notes: list[str] = []
        more = False
        self._check_lag()
        for number, source in enumerate(self._sources):
            try:
                segments, grown_segment, again = source.poll()
            except FileReplacedError as replaced:
                self._sources[number] = self._reopen(source, replaced.cut)
                fresh.append(self._say(self._describe_replaced(source, replaced.cut)))
                more = True
                continue
            except FileRemovedError:
                notes.append(self._describe_removed(source.file.path))
                continue
            fresh += segments
            if grown_segment is not None:
                grown.append(grown_segment)
            more = more or again
        return PollResult(fresh, grown, more, notes=tuple(notes))

    def begin_rest(self) -> bool:
        """Continue in the streams' own files when nothing more is added to the combined file.

        Returns:
            whether there is more to read in them.
        """
        return self._combined_lags() and bool(self._switch_to_stream_files())

    @property
    def fully_read(self) -> bool:
        """Whether every byte of the replica's own files is read or in the combined file."""
        return not self._combined_lags() and not self._has_unreported_bytes()

    def close(self) -> None:
        """Close the index files, which `register` does not know."""
        for file in self._index_files:
            file.close()

    def _make_sources(self) -> list[FileSource]:
        log = self.log
        if log.combined is not None and (self._indexed or (self._letters == "oec" and path_exists(log.combined))):
            return [self._source(log.combined, self._combined_chunks())]
        plain = {"o": log.stdout, "e": log.stderr}
        return [
            self._source(path, WholeFile(letter))
            for letter, path in plain.items()
            if path is not None and letter in self._letters
        ]

    def _combined_chunks(self) -> Chunks:
        index = self.log.index
        if not self._indexed or index is None:
            return WholeFile("c")
        self._index_files.append(LogFile(index))
        return ChunkIndex(self._index_files[-1], self._join_s)

    def _source(self, path: Path, chunks: Chunks, floor: int = 0, order: float = -math.inf) -> FileSource:
        file, number = self._register(path)
        return FileSource(file, number, chunks, self._letters, floor=floor, timeless_order=order)

    def _reopen(self, source: FileSource, cut: bool) -> FileSource:
        if cut:
            source.file.close()
        path = source.file.path
        if path == self.log.combined:
            return self._source(path, self._combined_chunks())
        return self._source(path, WholeFile("o" if path == self.log.stdout else "e"))

    def _describe_replaced(self, source: FileSource, cut: bool) -> str:
        what = "was cut short, its earlier lines are gone" if cut else "was replaced, what follows is the new file"
        return f"{self.log.role}/{self.log.replica}: {source.file.path.name} {what}"

    def _describe_removed(self, path: Path) -> str:
        """Name the whole folder that was removed, so that all its logs share one notice."""
        gone = path
        while not path_exists(gone.parent) and gone != gone.parent:
            gone = gone.parent
        if gone == path:
            return f"{self.log.role}/{self.log.replica}: {path} was removed; {_STILL_SHOWN}"
        return f"the folder {gone} was removed with the logs in it; {_STILL_SHOWN}"

    def _stream_file_states(self) -> dict[str, FileState | None]:
        paths = {"o": self.log.stdout, "e": self.log.stderr}
        return {letter: LogFile(path).stat() if path else None for letter, path in paths.items()}

    def _combined_lags(self) -> bool:
        """Whether the combined file lacks bytes of the streams' own files."""
        if not self._follows_combined or self.log.combined is None:
            return False
        combined = LogFile(self.log.combined).stat()
        raw = sum(state.size for state in self._stream_file_states().values() if state is not None)
        return raw > (combined.size if combined else 0)

    def _has_unreported_bytes(self) -> bool:
        """Whether a file is longer than its reported size."""
        paths = {*(source.file.path for source in self._sources), self.log.stdout, self.log.stderr}
        files = [LogFile(path) for path in paths if path is not None]
        return any((state := file.stat()) is not None and file.is_longer(state.size) for file in files)

    def _check_lag(self) -> None:
        """Switch to the streams' own files once the combined one has lagged for too long."""
        now = time.monotonic()
        if not self._follows_combined or now < self._next_lag_check:
            return
        self._next_lag_check = now + LAG_CHECK_INTERVAL_S
        combined = self._sources[0].position if self._sources else 0
        if not self._combined_lags():
            self._lagging_since = None
        elif self._lagging_since is None or combined != self._lagging_at:
            self._lagging_since, self._lagging_at = now, combined
        elif now - self._lagging_since >= COMBINED_LAG_S:
            self._switch_to_stream_files()

    def _switch_to_stream_files(self) -> list[FileSource]:
        """Read the streams' own files from where the combined one ends, instead of that one."""
        combined = self._sources[0]
        self._indexed = self._follows_combined = False
        if combined.position and not any(file.stat() is not None for file in self._index_files):
            return []
        lengths = stream_lengths(self._index_files[-1], combined.position)
        self._sources = []
        for letter, path in (("o", self.log.stdout), ("e", self.log.stderr)):
            if path is not None and letter in self._letters:
                floor = lengths.get(letter, 0)
                self._sources.append(self._source(path, WholeFile(letter, floor), floor, math.inf))
        return self._sources


def _is_indexed(log: ReplicaLog) -> bool:
    """Whether the combined file has an index, or will have one when it comes."""
    if log.combined is None or log.index is None:
        return False
    state = LogFile(log.combined).stat()
    return state is None or state.size == 0 or path_exists(log.index)
