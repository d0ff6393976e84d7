"""The list of all local apps, cheap to ask for again."""

from __future__ import annotations

import threading

from ..responses import ListAppResponse
from .apps import Apps
from .describe import list_run
from .record import Run
from .runs import Runs, Signature, signature_of


class Listing:
    """Makes a row of each app; that of a finished app is made once.

    Args:
        runs: our own apps.
        apps: these and TorchX's.
    """

    def __init__(self, runs: Runs, apps: Apps) -> None:
        self._runs = runs
        self._apps = apps
        self._rows: dict[str, tuple[Signature, ListAppResponse]] = {}
        self._torchx_rows: dict[str, tuple[Run, ListAppResponse]] = {}
        self._lock = threading.Lock()

    def rows(self) -> list[ListAppResponse]:
        """Return a row for every app, the latest first."""
        torchx = {run.app_id: self._torchx_row(run) for run in self._apps.torchx_apps()}
        own = {app_id: row for app_id in self._runs.app_ids() if (row := self._row(app_id)) is not None}
        found = {**torchx, **own}
        with self._lock:
            self._rows = {app_id: kept for app_id, kept in self._rows.items() if app_id in own}
            self._torchx_rows = {app_id: kept for app_id, kept in self._torchx_rows.items() if app_id in torchx}
        return sorted(found.values(), key=lambda row: row.submitted_at or 0.0, reverse=True)

    def _row(self, app_id: str) -> ListAppResponse | None:
        folder = self._runs.folder(app_id)
        signature = None if folder is None else signature_of(folder)
        with self._lock:
            kept = self._rows.get(app_id)
        if kept is not None and kept[0] == signature:
            # A copy: callers fill in the handle, and may keep the row.
            return _copy(kept[1])
        run = self._apps.find(app_id)
        if run is None:
            return None
        row = list_run(run)
        if run.over and signature is not None:
            with self._lock:
                self._rows[app_id] = (signature, row)
        return _copy(row)

    def _torchx_row(self, run: Run) -> ListAppResponse:
        with self._lock:
            kept = self._torchx_rows.get(run.app_id)
        # One that has ended is found as the same object again.
        row = kept[1] if kept is not None and kept[0] is run else list_run(run)
        with self._lock:
            self._torchx_rows[run.app_id] = run, row
        return _copy(row)


def _copy(row: ListAppResponse) -> ListAppResponse:
    from dataclasses import replace

    return replace(row, notes=list(row.notes))
