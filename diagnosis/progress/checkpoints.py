"""Finds the newest checkpoint of a job: by what its logs say that it saved, else by the names of files beside them."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ...base.files import read_tail

_TAIL_BYTES = 1 << 18
# A folder of many thousands of files is not looked through to its end, and none far below.
_MOST_ENTRIES, _MOST_DEPTH = 20_000, 5
_NAME = re.compile(r"checkpoint|ckpt|(?:^|[-_.])(?:step|epoch)[-_=]?\d+", re.IGNORECASE)
_SUFFIXES = (".ckpt", ".pt", ".pth", ".safetensors", ".distcp")
# Such as `saved checkpoint to /scratch/run/step_100.pt`, `Saving model checkpoint to out/checkpoint-500`.
_SAID = re.compile(
    r"(?:sav(?:ed|ing)|wrote|writing)\b[^\n]{0,80}?(?:checkpoint|ckpt|model|state)[^\n]{0,40}?"
    r"(?:\b(?:to|in|at)\b|[:=])\s*[`'\"]?(?P<path>[^\s`'\",;]+)",
    re.IGNORECASE,
)


def newest_checkpoint(folders: Iterable[Path], logs: Iterable[Path]) -> Path | None:
    """Return the newest checkpoint that is there, None where none is found.

    Args:
        folders: where the job runs, and relative paths in its logs begin; looked through where the logs say nothing.
        logs: its log files; the end of each is read.
    """
    places = list(dict.fromkeys(folders))
    said = [
        path for log in logs for path in _said_paths(read_tail(log, _TAIL_BYTES).decode("utf-8", "replace"), places)
    ]
    return _newest(said) or _newest(path for place in places for path in _below(place))


def _newest(paths: Iterable[Path]) -> Path | None:
    dated = []
    for path in paths:
        try:
            dated.append((path.stat().st_mtime_ns, path))
        except (OSError, ValueError):
            continue
    return max(dated, default=(0, None), key=lambda item: item[0])[1]


def _said_paths(text: str, places: list[Path]) -> Iterator[Path]:
    for found in _SAID.finditer(text):
        told = found["path"].rstrip(".")
        if told.startswith("/"):
            yield Path(told)
        else:
            yield from (place / told for place in places)


def _below(folder: Path) -> Iterator[Path]:
    """Yield what is named as a checkpoint, file or folder; what is in such a folder is part of it."""
    waiting, left = deque([(folder, 0)]), _MOST_ENTRIES
    while waiting:
        place, depth = waiting.popleft()
        # The listing itself, or what an entry is, may be what a network file system does not tell.
        with suppress(OSError, ValueError), os.scandir(place) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    return
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.name.endswith(_SUFFIXES) or (is_folder and _is_checkpoint(entry.name)):
                    yield Path(entry.path)
                elif is_folder and depth < _MOST_DEPTH and not entry.name.startswith("."):
                    waiting.append((Path(entry.path), depth + 1))


def _is_checkpoint(name: str) -> bool:
    # A folder `checkpoints` has them in it.
    return bool(_NAME.search(name)) and not name.lower().endswith("s")
