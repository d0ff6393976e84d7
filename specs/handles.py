"""App handles: texts of scheduler, session and app, such as `local_cwd://torchx/sh-x4dfk2`; and app ids."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from .errors import MalformedAppHandleException

# No vowels, so that no word appears; no digit first, as Kubernetes wants.
_FIRST = "bcdfghjklmnpqrstvwxz"
_REST = _FIRST + "012345679"


_HANDLE = re.compile(r"(?P<scheduler_backend>.+)://(?P<session_name>.*)/(?P<app_id>.+)")


def random_id(max_length: int | None = None) -> str:
    """Make an id of 64 random bits in lower-case letters and digits, nearly always 11 to 14 characters.

    Args:
        max_length: The longest length in characters; None for no limit.
    """
    number = int.from_bytes(os.urandom(8), "big")
    number, place = divmod(number, len(_FIRST))
    text = _FIRST[place]
    while number:
        number, place = divmod(number, len(_REST))
        text += _REST[place]
    return text if max_length is None else text[: max(0, max_length)]


def make_unique(name: str, string_length: int = 0) -> str:
    """Return `name-` followed by a random id.

    Args:
        name: What the id begins with.
        string_length: The random part's longest length in characters; 0 for all of it.
    """
    return f"{name}-{random_id(string_length or None)}"


def normalize_str(data: str) -> str:
    """Convert a text to a Kubernetes name: lower case, only `a-z`, `0-9` and `-`, without a leading `-`.

    The form of https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ as TorchX makes it.
    """
    return re.sub(r"[^a-z0-9-]", "", data.lower()).lstrip("-")


AppHandle = str


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
    """Parse a handle.

    Raises:
        MalformedAppHandleException: It is not `<scheduler>://<session>/<app id>`.
    """
    match = _HANDLE.fullmatch(app_handle)
    if match is None:
        raise MalformedAppHandleException(app_handle)
    return ParsedAppHandle(**match.groupdict())


def make_app_handle(scheduler_backend: str, session_name: str, app_id: str) -> AppHandle:
    """Make the handle of an app."""
    return f"{scheduler_backend}://{session_name}/{app_id}"


def split_context(scheduler_backend: str) -> tuple[str, str]:
    """Split a scheduler's registered name into its name and context, which may be empty.

    A handle has a context if there are several: `kubernetes@prod://torchx/default:sh-x4dfk2`. TorchX's have none.
    """
    name, _, context = scheduler_backend.partition("@")
    return name, context


def in_context(scheduler_backend: str, context: str) -> str:
    """Join a scheduler's name and a context; the inverse of `split_context`."""
    name, _ = split_context(scheduler_backend)
    return f"{name}@{context}" if context else name


def torchx_handle(app_handle: AppHandle) -> AppHandle:
    """Convert a handle to TorchX's form, without a context.

    Raises:
        MalformedAppHandleException: It is not `<scheduler>://<session>/<app id>`.
    """
    scheduler, session, app_id = parse_app_handle(app_handle)
    return make_app_handle(split_context(scheduler)[0], session, app_id)
