"""Files that screens save into the current folder, which may be shared with other users."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from ...logs.text.sanitize import plain

_MOST_TRIES = 1_000


def write_new_file(stem: str, ending: str, text: str) -> Path:
    """Write a new file into the current folder under the first free name, and return its path.

    It overwrites no file and follows no link, which another user may have planted.

    Raises:
        OSError: it cannot be written, or has no free name.
    """
    safe = "".join(char if char.isalnum() or char in "-_." else "_" for char in plain(stem)).lstrip(".") or "job"
    for number in range(_MOST_TRIES):
        path = Path(f"{safe}{f'-{number}' if number else ''}.{ending}")
        try:
            file = path.open("x", encoding="utf-8", newline="")
        except FileExistsError:
            continue
        with file:
            file.write(text)
        return path
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), f"{safe}.{ending}")
