"""A limit on the log files of this process that stay open between two reads."""

from __future__ import annotations

import resource
import threading
from typing import Protocol

# With more descriptors than this, opening files for each read costs little besides.
_MOST = 256
# The other descriptors are for connections, commands, terminals and files that are open for a moment.
_SHARE = 4


class _OpenFile(Protocol):
    def release(self) -> None:
        """Release the descriptor until the next read."""
        ...


class OpenFiles:
    """The files that were read last: at most a quarter of the descriptors that this process may have."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[_OpenFile, None] = {}

    def add(self, file: _OpenFile) -> None:
        """Note that a file was read, and release those that were read longest ago; no file's lock may be held."""
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _MOST if limit == resource.RLIM_INFINITY else min(_MOST, limit // _SHARE)
        with self._lock:
            self._files.pop(file, None)
            self._files[file] = None
            surplus = list(self._files)[: max(0, len(self._files) - most)]
            for oldest in surplus:
                del self._files[oldest]
        for oldest in surplus:
            oldest.release()

    def discard(self, file: _OpenFile) -> None:
        """Forget a file that is closed."""
        with self._lock:
            self._files.pop(file, None)


OPEN_FILES = OpenFiles()
"""Those of this process."""
