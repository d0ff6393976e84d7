"""Something that goes on in a thread while a test does something else."""

from __future__ import annotations

import threading


class Background:
    """Runs `work` in a thread as long as it is open. Subclasses have the work, which ends soon after `stop` is set."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._thread = threading.Thread(target=self.work, daemon=True)

    def work(self) -> None:
        raise NotImplementedError

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self._thread.join()
