"""Lets a plugin refuse an app before it is launched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...specs import AppDef, AppDefError, SchedulerError
from .calls import PluginCalls
from .to_torchx import ToTorchX


def refuse(calls: PluginCalls, theirs: Any, method: str, app: AppDef, scheduler: str, given: Mapping[str, Any]) -> None:
    """Ask a plugin whether it takes an app.

    Args:
        calls: the way into the plugin.
        theirs: the plugin's scheduler.
        method: which of its methods refuses; an older TorchX has not all of them.
        app: the app.
        scheduler: the scheduler's name.
        given: run options, as the plugin is given them.

    Raises:
        AppDefError: it does not.
    """
    check = getattr(theirs, method, None)
    if check is None:
        return

    def ask() -> None:
        resolve = getattr(theirs, "_resolve_cfg", None) or theirs.run_opts().resolve
        check(ToTorchX().app(app), scheduler, resolve(given))

    try:
        calls.call("take this app", ask)
    except SchedulerError as error:
        if isinstance(error.__cause__, ValueError):
            raise AppDefError(str(error.__cause__)) from error
        raise
