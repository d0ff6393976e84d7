"""Reads the files of one replica as one log, also where they were rotated or their supervisor died."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .chunks import ChunkIndex, Chunks, WholeFile, stream_lengths
from .file_source import FileRemovedError, FileReplacedError, Source
from .log_file import FileState, LogFile
from .parting import copied_lengths
from .replica_log import LETTERS, Polled, ReplicaLog, StreamName
from .segment import Segment

# The supervisor adds even an unfinished line to the combined file about a second after it came; bytes that are missing
# there for longer will not come.
_REST_AFTER = 2.0
_REST_CHECK = 1.0
_WHILE_OPEN = "its lines are shown until this log is closed"


class ReplicaReader:
    """The sources of one replica.

    Args:
        log: where the replica's log is.
        stream: which stream is wanted.
        register: opens a file and gives its number.
        say: makes a segment of a sentence of ours.
    """

    def __init__(
        self,
        log: ReplicaLog,
        stream: StreamName,
        register: Callable[[Path], tuple[LogFile, int]],
        say: Callable[[str], Segment],
    ) -> None:
        self.log = log
        self._letters = LETTERS[stream]
        self._register = register
        self._say = say
        self._indexed = _is_indexed(log)
        self._index_files: list[LogFile] = []
        self._sources = self._make_sources()
        self._derived = any(source.file.path == log.combined for source in self._sources)
        self._behind_since: float | None = None
        self._behind_at = 0
        self._next_check = 0.0

    def connect(self) -> None:
        """Files need no beginning."""

    @property
    def caught_up(self) -> bool:
        """What is in files is there."""
        return True

    def open(self) -> list[Iterator[Segment]]:
        """Start at the end of the files; return what is before it, the latest segments first, a file each."""
        older = [source.open() for source in self._sources]
        now = time.time()
        raw = [state for state in self._raw_states().values() if state is not None]
        if self._is_behind() and all(now - state.written_at > _REST_AFTER for state in raw):
            older += [source.open() for source in self._start_rest()]
        return older

    def poll(self) -> Polled:
        """Read what came since."""
        fresh: list[Segment] = []
        grown: list[Segment] = []
        notes: list[str] = []
        more = False
        self._check_rest()
        for number, source in enumerate(self._sources):
            try:
                segments, longer, again = source.poll()
            except FileReplacedError as replaced:
                self._sources[number] = self._reopen(source, replaced.cut)
                fresh.append(self._say(self._replaced_words(source, replaced.cut)))
                more = True
                continue
            except FileRemovedError:
                notes.append(self._removed_words(source.file.path))
                continue
            fresh += segments
            if longer is not None:
                grown.append(longer)
            more = more or again
        return Polled(fresh, grown, more, notes=tuple(notes))

    def begin_rest(self) -> bool:
        """Read on in the streams' own files, when nothing is added to the combined file any more.

        Returns:
            whether there is more to read in them.
        """
        return self._is_behind() and bool(self._start_rest())

    @property
    def settled(self) -> bool:
        """Whether every byte of the replica's own files is accounted for."""
        return not self._is_behind() and not self._is_told_late()

    def close(self) -> None:
        """Release what `register` knows nothing of."""
        for file in self._index_files:
            file.close()

    def _make_sources(self) -> list[Source]:
        log = self.log
        if log.combined is not None and (self._indexed or (self._letters == "oec" and log.combined.exists())):
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
        return ChunkIndex(self._index_files[-1])

    def _source(self, path: Path, chunks: Chunks, floor: int = 0, order: float = -math.inf) -> Source:
        file, number = self._register(path)
        return Source(file, number, chunks, self._letters, floor=floor, timeless_order=order)

    def _reopen(self, source: Source, cut: bool) -> Source:
        if cut:
            source.file.close()
        path = source.file.path
        if path == self.log.combined:
            return self._source(path, self._combined_chunks())
        return self._source(path, WholeFile("o" if path == self.log.stdout else "e"))

    def _replaced_words(self, source: Source, cut: bool) -> str:
        what = "was cut short, its earlier lines are gone" if cut else "was replaced, what follows is the new file"
        return f"{self.log.role}/{self.log.replica}: {source.file.path.name} {what}"

    def _removed_words(self, path: Path) -> str:
        """Name the whole folder that was removed, so that all its logs have one remark."""
        gone = path
        while not gone.parent.exists() and gone != gone.parent:
            gone = gone.parent
        if gone == path:
            return f"{self.log.role}/{self.log.replica}: {path} was removed; {_WHILE_OPEN}"
        return f"the folder {gone} was removed with the logs in it; {_WHILE_OPEN}"

    def _raw_states(self) -> dict[str, FileState | None]:
        paths = {"o": self.log.stdout, "e": self.log.stderr}
        return {letter: LogFile(path).look() if path else None for letter, path in paths.items()}

    def _is_behind(self) -> bool:
        """Whether the combined file lacks bytes of the streams' own files."""
        if not self._derived or self.log.combined is None:
            return False
        combined = LogFile(self.log.combined).look()
        raw = sum(state.size for state in self._raw_states().values() if state is not None)
        return raw > (combined.size if combined else 0)

    def _is_told_late(self) -> bool:
        """Whether a file is longer than its state says."""
        paths = {*(source.file.path for source in self._sources), self.log.stdout, self.log.stderr}
        files = [LogFile(path) for path in paths if path is not None]
        return any((state := file.look()) is not None and file.is_longer(state.size) for file in files)

    def _check_rest(self) -> None:
        """Start to read the streams' own files where the combined one has been behind for too long."""
        now = time.monotonic()
        if not self._derived or now < self._next_check:
            return
        self._next_check = now + _REST_CHECK
        combined = self._sources[0].position if self._sources else 0
        if not self._is_behind():
            self._behind_since = None
        elif self._behind_since is None or combined != self._behind_at:
            self._behind_since, self._behind_at = now, combined
        elif now - self._behind_since >= _REST_AFTER:
            self._start_rest()

    def _start_rest(self) -> list[Source]:
        """Read the streams' own files from where the combined one ends, and that one no more."""
        derived = self._sources[0]
        self._indexed = self._derived = False
        if any(file.look() is not None for file in self._index_files):
            shown = stream_lengths(self._index_files[-1], derived.position)
        else:  # TorchX writes no index
            streams = {"o": self.log.stdout, "e": self.log.stderr}
            shown = copied_lengths(derived.file, streams, derived.position) if derived.position else {}
            if shown is None:
                return []
        self._sources = []
        for letter, path in (("o", self.log.stdout), ("e", self.log.stderr)):
            if path is not None and letter in self._letters:
                floor = shown.get(letter, 0)
                self._sources.append(self._source(path, WholeFile(letter, floor), floor, math.inf))
        return self._sources


def _is_indexed(log: ReplicaLog) -> bool:
    """Whether the combined file has an index, or will have one when it comes."""
    if log.combined is None or log.index is None:
        return False
    state = LogFile(log.combined).look()
    return state is None or state.size == 0 or log.index.exists()
