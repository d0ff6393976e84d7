"""The files of a spool whose writing fails, or that somebody removes."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchx_tui.logs.spool.spool_file import SpoolSegment

LINE = b"a line of the log\n"


@pytest.fixture
def segment(tmp_path: Path) -> Iterator[SpoolSegment]:
    """Return a segment of more than one read."""
    made = SpoolSegment(tmp_path, 3)
    made.append(LINE * 200_000, 1000.0, "o")
    made.append(LINE, 2000.0, "e")
    yield made
    made.drop()


def open_in(folder: Path) -> int:
    """Count the descriptors of files in a folder, removed ones included."""
    found = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found += os.readlink(entry).startswith(f"{folder}/")
        except OSError:
            continue
    return found


def remove(segment: SpoolSegment) -> None:
    segment.data.path.unlink()
    segment.index.path.unlink()


def test_files_that_were_removed_are_written_anew(segment: SpoolSegment, tmp_path: Path) -> None:
    index = segment.index.read(0, 1000)
    assert index == b"0 1000.000000 o\n3600000 2000.000000 e\n"
    assert not segment.is_removed
    remove(segment)
    assert segment.is_removed
    segment.restore()
    assert not segment.is_removed
    segment.append(b"more\n", 3000.0, "e")
    segment.finish()
    assert open_in(tmp_path) == 0
    assert (tmp_path / "00000003.log").read_bytes() == LINE * 200_001 + b"more\n"
    assert (tmp_path / "00000003.index").read_bytes() == index + b"3600018 3000.000000 e\n"
    assert segment.data.read(3_600_000, 100) == LINE + b"more\n"
    assert open_in(tmp_path) == 1
    segment.release()
    assert open_in(tmp_path) == 0
    assert not segment.is_removed
    remove(segment)
    assert segment.is_removed


def test_one_file_that_was_removed_is_enough(segment: SpoolSegment) -> None:
    segment.index.path.unlink()
    assert segment.is_removed
    segment.restore()
    assert segment.index.path.exists()
    assert not segment.is_removed


def test_what_cannot_be_written_anew_stays_readable(
    segment: SpoolSegment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove(segment)
    before = open_in(tmp_path)

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", refuse)
        with pytest.raises(OSError, match="No space left"):
            segment.restore()
    assert list(tmp_path.iterdir()) == []
    assert open_in(tmp_path) == before
    assert segment.data.read(3_600_000, 100) == LINE
    segment.restore()
    assert segment.data.path.stat().st_size == 3_600_018


def test_a_segment_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "00000000.log").mkdir()
    with pytest.raises(OSError, match=r"00000000\.log"):
        SpoolSegment(tmp_path, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["00000000.log"]
    assert open_in(tmp_path) == 0


def test_what_was_written_in_part_is_no_part_of_it(segment: SpoolSegment, monkeypatch: pytest.MonkeyPatch) -> None:
    written = os.pwrite
    sizes = [3]

    def some(descriptor: int, data: bytes, at: int) -> int:
        if not sizes:
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(descriptor, data[: sizes.pop()], at)

    size = segment.size
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", some)
        with pytest.raises(OSError, match="No space left"):
            segment.append(b"later\n", 2000.0, "e")
    assert segment.size == size
    segment.append(b"again\n", 2000.0, "e")
    assert segment.data.read(3_600_018, 100) == b"again\n"
    assert (segment.lines, segment.latest, segment.is_whole) == (200_002, 2000.0, True)
