"""The request to a helper process that sends notifications."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..base.typed_data import convert
from .config import Settings


@dataclass(frozen=True)
class Happened:
    """An event of a job.

    Attributes:
        handle: the job's handle.
        event: see `Message`; ``start`` to watch the job.
        sentence: describes it; the helper explains it if empty.
    """

    handle: str
    event: str
    sentence: str = ""


def helper_argv() -> list[str]:
    """Return the command of the helper; it reads a request on stdin."""
    return [sys.executable, "-m", "torchx_tui.notify"]


def helper_request(settings: Settings, happened: Sequence[Happened]) -> str:
    """Write a request as JSON. It goes through a pipe: every user can read an argument list."""
    import msgspec

    needed = dataclasses.replace(settings, profiles={}, keys={})
    return json.dumps(
        {"settings": msgspec.to_builtins(needed), "happened": [dataclasses.asdict(it) for it in happened]}
    )


def read_request(text: str) -> tuple[Settings, list[Happened]]:
    """Read a request. Raises ValueError if it is not one."""
    data: dict[str, Any] = json.loads(text)
    return convert(data["settings"], Settings), convert(data["happened"], list[Happened])


def supervisor_helpers(settings: Settings, handle: str) -> dict[str, dict[str, Any]]:
    """Return the helpers that the supervisor of a local job starts when its replicas run and when it has ended.

    Args:
        settings: the settings of the launch.
        handle: the job's handle.
    """
    events = settings.notify.events if settings.notify.has_channel else ()
    wanted = {"start": {"stall", "first_step"}, "end": {"end", "failure"}}
    return {
        moment: {"argv": helper_argv(), "stdin": helper_request(settings, [Happened(handle, moment)])}
        for moment, names in wanted.items()
        if names & set(events)
    }
