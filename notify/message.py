"""What is told of a job: what happened, why, and the last lines that it printed. Secrets are masked."""

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
_WORDS = {STALL: "stalled", FIRST_STEP: "made its first step"}
_MOST_LINES, _MOST_OF_A_LINE = 10, 400
_TAIL = 65_536
# How long the lines of a stream are waited for (s).
_STREAM_S = 10.0


@dataclass(frozen=True)
class Message:
    """What is told.

    Attributes:
        event: ``end``, ``failure``, ``stall``, ``first_step`` or ``test``.
        handle: the job's handle.
        name: the job's name.
        state: its state, such as ``FAILED``.
        sentence: why, as the Why pane says it.
        lines: the last lines that it printed.
        time: when this was made (seconds since the epoch).
    """

    event: str
    handle: str
    name: str
    state: str
    sentence: str
    lines: tuple[str, ...] = ()
    time: float = field(default_factory=time.time)

    def title(self) -> str:
        """Return it in a few words, such as ``llama3-8b failed``."""
        return f"{self.name} {_WORDS.get(self.event, self.state.lower())}"

    def text(self) -> str:
        """Return all of it as lines of text."""
        return "\n".join([f"{self.title()}: {self.sentence}", self.handle, *(["", *self.lines] if self.lines else [])])

    def facts(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def compose(runner: Runner, handle: str, event: str, sentence: str = "") -> Message | None:
    """Return the message about a job; None where its backend does not know it.

    Args:
        runner: the way to its backend.
        handle: the job's handle.
        event: what happened.
        sentence: says it; why the job ended where this is empty.
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
    kept = [line.rstrip() for line in lines if line.strip()][-_MOST_LINES:]
    return tuple(mask_text("", line[:_MOST_OF_A_LINE]) for line in kept)


def _end_of_files(paths: list[Any]) -> bytes:
    latest, data = -math.inf, b""
    for path in paths:
        file = LogFile(path)
        try:
            state = file.stat()
            if state is not None and state.size and state.written_at > latest:
                latest, data = state.written_at, file.read(max(0, state.size - _TAIL), _TAIL)
        finally:
            file.close()
    return data


def _end_of_streams(logs: list[ReplicaLog]) -> bytes:
    kept: deque[bytes] = deque(maxlen=4)
    blocks = LogBlocks(logs)
    blocks.connect()
    try:
        deadline = time.monotonic() + _STREAM_S
        more = True
        while time.monotonic() < deadline and (more or not blocks.caught_up):
            found, more = blocks.poll()
            kept.extend(block[0][-_TAIL:] for block in found)
            if not more:
                time.sleep(0.05)
    finally:
        blocks.close()
    return b"".join(kept)[-_TAIL:]
