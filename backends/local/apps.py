"""All local apps: ours by their state files, and TorchX's; what was deleted of TorchX's is not shown any more."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ...base.files import path_exists, private_folder
from ...specs.errors import JobNotFoundError
from .record import Run
from .runs import Runs

if TYPE_CHECKING:
    from .torchx.jobs import TorchXJobs


_SIGNALS = (signal.SIGTERM, signal.SIGINT)


SHOWN_VARIABLE = "TORCHX_TUI_SHOWS_TORCHX_JOBS"
"""Set to 0 in the environment, TorchX's local jobs are not looked for: for tests, which run beside others'."""


class LaunchedApps:
    """Ids of the apps that were launched here and not detached.

    Args:
        end: called for each of them when a signal says so.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._ids: dict[str, None] = {}
        # A signal may come while this thread holds it.
        self._lock = threading.RLock()
        self._end = end
        self._before: dict[int, Any] = {}

    def add(self, app_id: str) -> None:
        """Take an app in."""
        with self._lock:
            self._ids[app_id] = None

    def discard(self, app_id: str) -> None:
        """Let an app go on by itself."""
        with self._lock:
            self._ids.pop(app_id, None)

    def ids(self) -> list[str]:
        """Return the ids, in the order of launches."""
        with self._lock:
            return list(self._ids)

    def handle_signals(self) -> None:
        """End the apps on SIGTERM and SIGINT, then do what was done before; possible on the main thread only."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if before not in (None, signal.SIG_IGN):
                self._before[number] = before
                signal.signal(number, self._on_signal)

    def restore_signals(self) -> None:
        """Put back what was done on signals before, unless someone else changed it since."""
        if threading.current_thread() is threading.main_thread():
            for number, before in self._before.items():
                if signal.getsignal(number) == self._on_signal:
                    signal.signal(number, before)
            self._before.clear()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._end()
        before = self._before.get(number, signal.SIG_DFL)
        if callable(before):
            before(number, frame)
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


logger = logging.getLogger(__name__)


class Apps:
    """Looks an app up wherever it comes from.

    Args:
        runs: our own apps, and those of TorchX's that were cancelled here.
        root: the folder in which state is kept.
        log_dirs: gives folders in which TorchX has logs; those that launches here were given are looked at as well.
    """

    def __init__(self, runs: Runs, root: Path, log_dirs: Callable[[], Iterable[Path]] = tuple) -> None:
        self._runs = runs
        self._root = root
        self._hidden = root / "torchx-deleted"
        self._log_dirs = log_dirs
        self._torchx: TorchXJobs | None = None
        self._removed: set[str] = set()
        self._lock = threading.Lock()

    def find(self, app_id: str) -> Run | None:
        """Return an app as it is now, None when it is not known."""
        run = self._runs.find(app_id)
        if run is None:
            run = self._look().get(app_id)
        return None if run is None or self._is_deleted(run) else run

    def get(self, app_id: str) -> Run:
        """Return an app as it is now.

        Raises:
            JobNotFoundError: it is not known.
        """
        run = self.find(app_id)
        if run is None:
            raise JobNotFoundError(app_id, "local_cwd")
        return run

    def torchx_apps(self) -> list[Run]:
        """Return TorchX's apps, but for those that our own list has."""
        return [run for run in self._look().values() if not self._is_deleted(run)]

    def hide(self, run: Run) -> None:
        """Do not show an app of TorchX's any more once it has ended; its folder is TorchX's and stays.

        Raises:
            OSError: that cannot be written down.
        """
        private_folder(self._hidden)
        (self._hidden / run.app_id).touch(mode=0o600)

    def _look(self) -> dict[str, Run]:
        if os.environ.get(SHOWN_VARIABLE) == "0":
            return {}
        with self._lock:
            if self._torchx is None:
                from .torchx.jobs import TorchXJobs

                # A launch needs none of it.
                self._torchx = TorchXJobs(
                    lambda: [*self._log_dirs(), *self._runs.log_dirs(self._root)], self._root / "torchx"
                )
        return self._torchx.look()

    def _is_deleted(self, run: Run) -> bool:
        if run.app_id in self._removed:
            return True  # what was seen a moment ago may say that it runs
        if not (run.by_torchx and run.over and path_exists(self._hidden / run.app_id)):
            return False
        if path_exists(run.folder):
            try:
                self._runs.remove(run)  # the folder is ours, that of the logs is not
            except OSError as error:
                logger.debug("%s: %s", run.app_id, error)
        self._removed.add(run.app_id)
        return True
