"""The workers that build components: one for each interpreter and folder that imports start from."""

from __future__ import annotations

import os
import re
import threading
from typing import Any

from ..base.files import current_folder, modified_ns
from ..base.validation import JsonObject
from .interpreter import Interpreter
from .settings import guest_settings
from .worker import TICK_S, RemoteError, Tick, Worker, WorkerError, WorkerTimeoutError

BUILDER = "torchx_tui.guest.builder"
_MAX_WORKERS = 4
# How long a component that is over its time may take to end, and to write where it was.
_STOP_TIMEOUT_S = 10.0
_FRAME = re.compile(r'^  File "(?P<path>.+)", line (?P<line>\d+) in ', re.MULTILINE)


class WorkerPool:
    """Workers that keep what they have imported until one of its files changes."""

    def __init__(self) -> None:
        self._slots: dict[tuple[str, str], _Slot] = {}
        self._lock = threading.Lock()

    def build(
        self,
        interpreter: Interpreter,
        component: JsonObject,
        given: JsonObject,
        tick: Tick,
    ) -> Any:
        """Build a component's AppDef; return it as plain data. Cancels and raises as `Worker.call` does."""
        key = (interpreter.path, component["root"])
        with self._lock:
            # The last is the one used last.
            slot = self._slots[key] = self._slots.pop(key, None) or _Slot()
            evicted = [self._slots.pop(old) for old in list(self._slots)[:-_MAX_WORKERS]]
        for old in evicted:
            if old.worker is not None:
                old.worker.retire()
        # A component that hangs must not end with it the call that waits behind it.
        while not slot.lock.acquire(timeout=TICK_S):
            tick()
        try:
            return slot.build(interpreter, component, given, tick)
        finally:
            slot.lock.release()

    def close(self) -> None:
        """End all workers."""
        with self._lock:
            slots, self._slots = self._slots, {}
        for slot in slots.values():
            slot.close()


pool = WorkerPool()
"""The workers of this process."""


class _Slot:
    def __init__(self) -> None:
        self.worker: Worker | None = None
        self.lock = threading.Lock()
        self._world: Any = None
        self._files: dict[str, int] = {}

    def build(
        self,
        interpreter: Interpreter,
        component: JsonObject,
        given: JsonObject,
        tick: Tick,
    ) -> Any:
        limit = guest_settings().timeout_s
        worker = self._current(interpreter, tick)
        answer: JsonObject = {}
        try:
            answer = worker.call("build", [component, given, limit], limit + _STOP_TIMEOUT_S, tick)
            return answer["app"]
        except RemoteError as raised:
            answer = raised.error
            raise
        except WorkerError as error:
            # The process itself ends what hangs, and writes a traceback.
            output, marker, trace = error.output.rpartition("Timeout (")
            if not marker and not isinstance(error, WorkerTimeoutError):
                raise
            lines = [int(frame["line"]) for frame in _FRAME.finditer(trace) if frame["path"] == component["path"]]
            reason = f"it did not return within {limit:g} s and was stopped"
            raise WorkerError(reason, output.strip(), lines[0] if lines else None) from error
        finally:
            for path, modified in answer.get("files", ()):
                self._files.setdefault(path, modified)
            if not answer.get("loaded"):
                # A module that failed half-way is imported again, from files that may be mended by then.
                worker.close()

    def _current(self, interpreter: Interpreter, tick: Tick) -> Worker:
        """Return a worker that was started with today's environment and folder, and has imported today's files."""
        world = dict(os.environ), current_folder()
        is_current = self._world == world and all(modified_ns(path) == time for path, time in self._files.items())
        if self.worker is None or not self.worker.is_usable or not is_current:
            self.close()
            settings = guest_settings()
            self._world, self._files = world, {}
            self.worker = Worker(
                "components",
                interpreter,
                BUILDER,
                memory_gigabytes=settings.memory_gigabytes,
                idle_s=settings.idle_s,
                tick=tick,
            )
        return self.worker

    def close(self) -> None:
        if self.worker is not None:
            self.worker.close()
