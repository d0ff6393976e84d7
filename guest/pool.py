"""The workers that build components: one for each interpreter and folder that imports start from."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from typing import Any

from ..base.files import current_folder, modified_ns
from .interpreter import Interpreter
from .settings import guest_settings
from .worker import TICK_S, RemoteError, Worker, WorkerError, WorkerTimeoutError

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
        component: dict[str, Any],
        values: list[dict[str, Any]],
        tick: Callable[[], object],
    ) -> Any:
        """Build a component's AppDef; return it as plain data. Arguments and errors are those of `Worker.call`."""
        key = (interpreter.path, component["root"])
        with self._lock:
            # The last is the one used last.
            slot = self._slots[key] = self._slots.pop(key, None) or _Slot(interpreter)
            evicted = [self._slots.pop(old) for old in list(self._slots)[:-_MAX_WORKERS]]
        for old in evicted:
            old.worker.retire()
        return slot.build(component, values, tick)

    def close(self) -> None:
        """End all workers."""
        with self._lock:
            slots, self._slots = self._slots, {}
        for slot in slots.values():
            slot.worker.close()


pool = WorkerPool()
"""The workers of this process."""


class _Slot:
    def __init__(self, interpreter: Interpreter) -> None:
        settings = guest_settings()
        self.worker = Worker(
            "components",
            interpreter,
            BUILDER,
            memory_gigabytes=settings.memory_gigabytes,
            idle_s=settings.idle_s,
        )
        # A component that hangs must not end with it the call that waits behind it.
        self._lock = threading.Lock()
        self._world: Any = None
        self._files: dict[str, int] = {}

    def build(self, component: dict[str, Any], values: list[dict[str, Any]], tick: Callable[[], object]) -> Any:
        while not self._lock.acquire(timeout=TICK_S):
            tick()
        try:
            world = dict(os.environ), current_folder()
            if self._world != world or any(modified_ns(path) != time for path, time in self._files.items()):
                self.worker.close()
                self._world, self._files = world, {}
            return self._call(component, values, tick)
        finally:
            self._lock.release()

    def _call(self, component: dict[str, Any], values: list[dict[str, Any]], tick: Callable[[], object]) -> Any:
        limit = guest_settings().timeout_s
        try:
            answer = self.worker.call("build", [component, values, limit], limit + _STOP_TIMEOUT_S, tick)
        except RemoteError as raised:
            self._note_files(raised.error)
            if not raised.error.get("loaded"):
                # A module that failed half-way is imported again, from files that may be mended by then.
                self.worker.close()
            raise
        except WorkerError as error:
            # The process itself ends what hangs, and writes a traceback.
            output, marker, trace = error.output.rpartition("Timeout (")
            if not marker and not isinstance(error, WorkerTimeoutError):
                raise
            lines = [int(frame["line"]) for frame in _FRAME.finditer(trace) if frame["path"] == component["path"]]
            reason = f"it did not return within {limit:g} s and was stopped"
            raise WorkerError(reason, output.strip(), lines[0] if lines else None) from error
        self._note_files(answer)
        return answer["app"]

    def _note_files(self, answer: dict[str, Any]) -> None:
        for path, modified in answer.get("files", ()):
            self._files.setdefault(str(path), int(modified))
