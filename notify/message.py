"""The message about a job: what happened, why, and its last lines. Secrets are masked."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..backends.shared.secrets import mask_text
from ..diagnosis.failure.explain import explain_job
from ..diagnosis.progress.reader import last_written
from ..logs.lines.blocks import followed
from ..logs.lines.merge import MergedLog
from ..logs.text.sanitize import plain
from ..logs.text.shown import shown_text
from ..specs.status import AppState

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..backends.types import DescribeAppResponse
    from ..logs.source.replica_log import ReplicaLog

logger = logging.getLogger(__name__)

END, FAILURE, STALL, FIRST_STEP = "end", "failure", "stall", "first_step"
_TITLES = {STALL: "stalled", FIRST_STEP: "made its first step"}
_MAX_LINES, _MAX_LINE_LENGTH = 10, 400
# Lines to look at: empty ones are left out of a message.
_MAX_LINES_READ, _READ_TIMEOUT_S = 100, 2.0
_STREAM_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Message:
    """A message about a job.

    Attributes:
        event: ``end``, ``failure``, ``stall``, ``first_step`` or ``test``.
        handle: the job's handle.
        name: the job's name.
        state: its state, such as ``FAILED``.
        sentence: the sentence of the Why pane.
        lines: the last lines of its log.
        time: when the message was made, in seconds since the epoch.
    """

    event: str
    handle: str
    name: str
    state: str
    sentence: str
    lines: tuple[str, ...] = ()
    time: float = field(default_factory=time.time)

    def title(self) -> str:
        """Return a title such as ``llama3-8b failed``."""
        return f"{self.name} {_TITLES.get(self.event, self.state.lower())}"

    def text(self) -> str:
        """Return the message as text."""
        return "\n".join([f"{self.title()}: {self.sentence}", self.handle, *(["", *self.lines] if self.lines else [])])


def compose(runner: Runner, handle: str, event: str, sentence: str = "") -> Message | None:
    """Return the message about a job; None if its backend does not know it.

    Args:
        runner: gives access to its backend.
        handle: the job's handle.
        event: what happened.
        sentence: describes it; if empty, why the job ended.
    """
    described = runner.job(handle).describe()
    if described is None:
        return None
    logs: list[ReplicaLog] = []
    try:
        logs = runner.job(handle).replica_logs(described)
        lines = last_lines(logs)
        sentence = sentence or _why(runner, handle, described, logs)
    except Exception:
        # A message without lines is better than none.
        logger.exception("the log of %s cannot be read", handle)
        lines = ()
        sentence = sentence or _why(runner, handle, described, [])
    name = plain(described.name or described.app_id)
    return Message(event, handle, name, described.state.name, mask_text("", plain(sentence)), lines)


def _why(runner: Runner, handle: str, described: DescribeAppResponse, logs: list[ReplicaLog]) -> str:
    """Return the sentence of the Why pane."""
    found = explain_job(runner, handle, described, logs).sentence
    if not found and described.state is AppState.SUCCEEDED:
        return "Every replica ended with exit code 0."
    return found or f"{described.state.name.capitalize()}: the backend gives no reason."


def last_lines(logs: Sequence[ReplicaLog]) -> tuple[str, ...]:
    """Return the last lines of the replica that printed last, sanitised and masked."""
    files = [log for log in logs if log.spool is None]
    chosen = [max(files, key=lambda log: last_written([log])[0])] if files else followed(logs)
    log = MergedLog(chosen)
    try:
        log.connect()
        deadline = time.monotonic() + _STREAM_TIMEOUT_S
        while not log.caught_up and time.monotonic() < deadline:
            time.sleep(0.05)
        log.open()
        log.read_older(_READ_TIMEOUT_S, _MAX_LINES_READ)
        found = [line for line in log.lines(log.bounds().end - _MAX_LINES_READ, _MAX_LINES_READ) if line.replica >= 0]
    finally:
        log.close()
    texts = [shown_text(line.data).rstrip() for line in found if line.replica == found[-1].replica]
    return tuple(mask_text("", text[:_MAX_LINE_LENGTH]) for text in list(filter(None, texts))[-_MAX_LINES:])
