"""What is known of apps beyond what a plugin tells: those that were launched from here."""

from __future__ import annotations

import copy
import threading
import time

from ...specs import AppDef, AppState
from ..responses import DescribeAppResponse

# A backend may not tell everything yet of a job that it has just taken (s).
_NEW_SECONDS = 30.0


class KnownApps:
    """Names, roles and times of apps; every method may be called from any thread."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._launched: dict[str, tuple[float, AppDef | None]] = {}
        self._lock = threading.Lock()

    def launched(self, app_id: str, app: AppDef | None) -> None:
        """Note that an app was launched."""
        with self._lock:
            self._launched[app_id] = time.monotonic(), copy.deepcopy(app)
            if app is not None:
                self._names[app_id] = app.name

    def deleted(self, app_id: str) -> None:
        """Note that an app is to be known no more."""
        with self._lock:
            self._launched.pop(app_id, None)

    def name(self, app_id: str, told: str = "") -> str:
        """Return an app's name, empty where nobody has told it.

        Args:
            app_id: the app's id.
            told: what the plugin calls it now.
        """
        with self._lock:
            return self._names.setdefault(app_id, told) if told else self._names.get(app_id, "")

    def new_ids(self) -> list[str]:
        """Return the apps that were launched a moment ago."""
        with self._lock:
            return [app_id for app_id in self._launched if self._is_new(app_id)]

    def completed(self, app_id: str, described: DescribeAppResponse | None) -> DescribeAppResponse | None:
        """Return a description with what is known beside: its name, roles that are not told, an app that is too new.

        Args:
            app_id: the app's id.
            described: what the plugin says; None where it does not know the app.
        """
        with self._lock:
            if described is None:
                if not self._is_new(app_id):
                    return None
                described = DescribeAppResponse(app_id, AppState.SUBMITTED)
            _, app = self._launched.get(app_id, (0.0, None))
            if app is not None and not described.roles:
                described.roles = copy.deepcopy(app.roles)
            described.name = self._names.get(app_id, "")
            return described

    def _is_new(self, app_id: str) -> bool:
        return app_id in self._launched and time.monotonic() - self._launched[app_id][0] < _NEW_SECONDS
