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
        scheduler_backend: The scheduler's registered name, such as `kubernetes`; see `split_context`.
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


def split_context(scheduler_backend: str) -> tuple[str, str]:
    """Return a scheduler's registered name, and in which context it is asked, empty where none is named.

    TorchX's handles name no context: ours do where there are several, as in `kubernetes@prod://torchx/default:sh-x4dfk2`.
    """
    name, _, context = scheduler_backend.partition("@")
    return name, context


def in_context(scheduler_backend: str, context: str) -> str:
    """Return how a scheduler is named that is asked in a context; the other way round `split_context`."""
    name, _ = split_context(scheduler_backend)
    return f"{name}@{context}" if context else name


def torchx_handle(app_handle: AppHandle) -> AppHandle:
    """Return a handle as TorchX writes it: without a context.

    Raises:
        MalformedAppHandleException: It is not `<scheduler>://<session>/<app id>`.
    """
    scheduler, session, app_id = parse_app_handle(app_handle)
    return make_app_handle(split_context(scheduler)[0], session, app_id)
