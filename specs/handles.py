"""App handles: one text that says which scheduler, session and app, such as `local_cwd://torchx/sh-x4dfk2`."""

from __future__ import annotations

import re
from typing import NamedTuple

from .errors import MalformedAppHandleException

AppHandle = str

_HANDLE = re.compile(r"(?P<scheduler_backend>.+)://(?P<session_name>.*)/(?P<app_id>.+)")


class ParsedAppHandle(NamedTuple):
    """The parts of an app handle.

    Args:
        scheduler_backend: The scheduler's registered name, such as `kubernetes`.
        session_name: Who launched it; may be empty, and is never compared.
        app_id: The id that the scheduler knows it by.
    """

    scheduler_backend: str
    session_name: str
    app_id: str


def parse_app_handle(app_handle: AppHandle) -> ParsedAppHandle:
    """Return the parts of a handle.

    Raises:
        MalformedAppHandleException: It is not `<scheduler>://<session>/<app id>`.
    """
    match = _HANDLE.fullmatch(app_handle)
    if match is None:
        raise MalformedAppHandleException(app_handle)
    return ParsedAppHandle(**match.groupdict())


def make_app_handle(scheduler_backend: str, session_name: str, app_id: str) -> AppHandle:
    """Return the handle of an app."""
    return f"{scheduler_backend}://{session_name}/{app_id}"
