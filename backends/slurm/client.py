"""Questions to Slurm, with a cache of their answers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from cachetools import TLRUCache

from ...specs.errors import BackendUnavailableError, SchedulerError
from .commands import TIMEOUT_S, Answer, failure, run

logger = logging.getLogger(__name__)

RETRY_S = 20.0
"""Seconds until Slurm is asked again after it could not be reached."""
REFUSED_S = 60.0
"""Most seconds for which an answer is kept that refuses the question: the reason may pass."""
# A command that is missing fails at once, and is no sign of an outage.
_SLOW_S = 2.0
_MAX_BYTES = 64 << 20
_ENTRY_BYTES = 500


class Client:
    """Runs Slurm's commands and caches their answers. Every method may be called from any thread.

    While the controller or accounting cannot be reached, commands fail at once: each would wait 9 to 18 s.

    Args:
        max_bytes: size of the cache.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._lock = threading.Lock()
        self._cache: TLRUCache[Hashable, Answer] = TLRUCache(
            max_bytes,
            ttu=lambda _, answer, now: now + answer.keep_s,
            timer=lambda: time.monotonic(),
            getsizeof=lambda answer: _ENTRY_BYTES + len(answer.out) + len(answer.err),
        )

    def run(
        self,
        command: Sequence[str],
        *,
        keep_s: float = 0.0,
        key: Hashable = None,
        timeout: float = TIMEOUT_S,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Answer:
        """Run a command that only asks, or return its cached answer, whatever the exit code.

        Args:
            command: the argument list.
            keep_s: seconds to keep the answer.
            key: identifies the question; the command if None.
            timeout: see `commands.run`.
            stdin: likewise.
            env: likewise.

        Raises:
            BackendUnavailableError: Slurm cannot be reached, or could not be a moment ago.
        """
        key = tuple(command) if key is None else key
        daemon = "slurmdbd" if command[0] in ("sacct", "sacctmgr") else "slurmctld"
        with self._lock:
            if kept := self._cache.get(key):
                return kept
            if outage := self._cache.get(daemon):
                raise BackendUnavailableError(outage.err)
        began = time.monotonic()
        try:
            answer = run(command, timeout=timeout, stdin=stdin, env=env)
            if answer.code != 0 and isinstance(error := failure(command[0], answer), BackendUnavailableError):
                raise error
        except BackendUnavailableError as error:
            if time.monotonic() - began > _SLOW_S:
                self._keep(daemon, Answer(1, "", str(error), keep_s=RETRY_S))
            raise
        answer = replace(answer, asked_at=began, keep_s=keep_s if answer.code == 0 else min(keep_s, REFUSED_S))
        self._keep(key, answer)
        return answer

    def ask(
        self, command: Sequence[str], *, keep_s: float = 0.0, key: Hashable = None, timeout: float = TIMEOUT_S
    ) -> str:
        """Return the output of a command that only asks; raise `CommandError` where it failed. See `run`."""
        answer = self.run(command, keep_s=keep_s, key=key, timeout=timeout)
        if answer.code != 0:
            raise failure(command[0], answer)
        return answer.out

    def ask_or_empty(self, command: Sequence[str], *, keep_s: float) -> str:
        """Return what `ask` does, and nothing where the command failed: for what is only evidence."""
        try:
            return self.ask(command, keep_s=keep_s)
        except SchedulerError as error:
            logger.info("%s: %s", " ".join(command), error)
            return ""

    def _keep(self, key: Hashable, answer: Answer) -> None:
        with self._lock:
            if answer.keep_s > 0 and self._cache.getsizeof(answer) <= self._cache.maxsize:
                self._cache[key] = answer
