"""What is known of apps beyond what a plugin tells: those that were launched from here."""

from __future__ import annotations

import threading
import time

from ...specs import AppDef, AppState
from ..responses import DescribeAppResponse

# A backend may not know a job yet that it has just taken (s).
_NEW_SECONDS = 30.0


class KnownApps:
    """Names and times of apps; every method may be called from any thread."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._launched: dict[str, float] = {}
        self._lock = threading.Lock()

    def launched(self, app_id: str, app: AppDef | None) -> None:
        """Note that an app was launched."""
        with self._lock:
            self._launched[app_id] = time.monotonic()
            if app is not None:
                self._names[app_id] = app.name

    def name(self, app_id: str, told: str = "") -> str:
        """Return an app's name, empty where nobody has told it.

        Args:
            app_id: the app's id.
            told: what the plugin calls it now.
        """
        with self._lock:
            return self._names.setdefault(app_id, told) if told else self._names.get(app_id, "")

    def just_launched(self, app_id: str) -> DescribeAppResponse | None:
        """Return what is said of an app that its backend does not know yet; None for any other."""
        with self._lock:
            at = self._launched.get(app_id)
            if at is None or time.monotonic() - at > _NEW_SECONDS:
                return None
            return DescribeAppResponse(app_id, AppState.SUBMITTED, name=self._names.get(app_id, ""))
