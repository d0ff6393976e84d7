"""The message about a job: what happened, why, and its last lines. Secrets are masked."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ..backends.replica_logs import replica_logs
from ..backends.shared.secrets import mask_text
from ..diagnosis.failure.explain import explain_job
from ..diagnosis.progress.blocks import LogBlocks
from ..logs.source.log_file import LogFile
from ..logs.text.sanitize import plain
from ..specs.status import AppState

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..backends.types import DescribeAppResponse
    from ..logs.source.replica_log import ReplicaLog

logger = logging.getLogger(__name__)

END, FAILURE, STALL, FIRST_STEP = "end", "failure", "stall", "first_step"
_TITLES = {STALL: "stalled", FIRST_STEP: "made its first step"}
_MAX_LINES, _MAX_LINE_LENGTH = 10, 400
_TAIL_BYTES = 65_536
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

    def facts(self) -> dict[str, Any]:
        """Return the message as plain data."""
        return asdict(self)


def compose(runner: Runner, handle: str, event: str, sentence: str = "") -> Message | None:
    """Return the message about a job; None if its backend does not know it.

    Args:
        runner: gives access to its backend.
        handle: the job's handle.
        event: what happened.
        sentence: describes it; if empty, why the job ended.
    """
    described = runner.describe(handle)
    if described is None:
        return None
    logs: list[ReplicaLog] = []
    try:
        logs = replica_logs(runner.replica_log, handle, described)
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
    return found or f"{described.state.name.capitalize()}: nothing to explain."


def last_lines(logs: list[ReplicaLog]) -> tuple[str, ...]:
    """Return the last lines of the replica that printed last, sanitised and masked."""
    files = [path for log in logs for path in (log.combined, log.stdout, log.stderr) if path is not None]
    data = _end_of_files(files) if files else _end_of_streams(logs)
    lines = [plain(line) for line in data.decode("utf-8", "replace").splitlines()]
    kept = [line.rstrip() for line in lines if line.strip()][-_MAX_LINES:]
    return tuple(mask_text("", line[:_MAX_LINE_LENGTH]) for line in kept)


def _end_of_files(paths: list[Any]) -> bytes:
    latest, data = -math.inf, b""
    for path in paths:
        file = LogFile(path)
        try:
            state = file.stat()
            if state is not None and state.size and state.written_at > latest:
                latest, data = state.written_at, file.read(max(0, state.size - _TAIL_BYTES), _TAIL_BYTES)
        finally:
            file.close()
    return data


def _end_of_streams(logs: list[ReplicaLog]) -> bytes:
    kept: deque[bytes] = deque(maxlen=4)
    blocks = LogBlocks(logs)
    blocks.connect()
    try:
        deadline = time.monotonic() + _STREAM_TIMEOUT_S
        more = True
        while time.monotonic() < deadline and (more or not blocks.caught_up):
            found, more = blocks.poll()
            kept.extend(block[0][-_TAIL_BYTES:] for block in found)
            if not more:
                time.sleep(0.05)
    finally:
        blocks.close()
    return b"".join(kept)[-_TAIL_BYTES:]
