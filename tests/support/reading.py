"""Following logs as the pane does, in a program that reads a scheduler's logs through spools."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from torchx_tui.backends.runner import Runner
from torchx_tui.base.files import cache_folder
from torchx_tui.logs.lines.background import LogFollower
from torchx_tui.logs.lines.merge import MergedLog
from torchx_tui.logs.source.replica_log import ReplicaLog, StreamName

from .streaming import LinesScheduler
from .waiting import PATIENCE, wait_until

HANDLE = "fake://torchx/app"


class Reading:
    """A log that a thread follows, as the pane has it."""

    def __init__(
        self, logs: list[ReplicaLog], stream: StreamName = "combined", final: Callable[[], bool] | None = None
    ):
        self.log = MergedLog(logs, stream)
        self.changed = threading.Event()
        self.follower = LogFollower(self.log, self.changed.set, final)
        self.follower.start()

    def lines(self) -> list[bytes]:
        bounds = self.log.bounds()
        self.follower.acknowledge()
        return [line.data for line in self.log.lines(bounds.first, bounds.end - bounds.first) if line.stream != "n"]

    def notices(self) -> list[str]:
        bounds = self.log.bounds()
        self.follower.acknowledge()
        found = self.log.lines(bounds.first, bounds.end - bounds.first)
        return [line.data.decode() for line in found if line.stream == "n"]

    def wait_for(self, lines: list[bytes]) -> None:
        try:
            wait_until(lambda: self.lines() == lines, "the lines", PATIENCE)
        except AssertionError:
            assert self.lines() == lines

    def wait_for_last(self, *lines: bytes) -> None:
        """Wait until the last lines are these, in any order."""
        wait_until(lambda: sorted(self.lines()[-len(lines) :]) == sorted(lines), "the last lines", PATIENCE)

    def wait_for_notice(self, *words: str) -> str:
        def find() -> str:
            return next((text for text in self.notices() if all(word in text for word in words)), "")

        wait_until(find, f"a notice with {words}", PATIENCE)
        return find()

    def close(self) -> None:
        self.follower.close()
        assert self.follower.join(PATIENCE)


class Instance:
    """A running program with one job."""

    def __init__(self, scheduler: LinesScheduler, *, job: int = 512_000_000, total: int = 2_048_000_000):
        self.scheduler = scheduler
        self.runner = Runner(spool_limits=(job, total), schedulers={"fake": scheduler})
        self._readings: list[Reading] = []

    def logs(self, handle: str = HANDLE) -> list[ReplicaLog]:
        return [self.runner.job(handle).replica_log("trainer", k) for k in range(self.scheduler.replicas)]

    def read(self, *replicas: int, stream: StreamName = "combined", handle: str = HANDLE) -> Reading:
        logs = self.logs(handle)
        final = lambda: self.scheduler.describe("app").has_ended  # noqa: E731
        reading = Reading([logs[k] for k in replicas] if replicas else logs, stream, final)
        self._readings.append(reading)
        return reading

    def spool_folders(self) -> list[Path]:
        return sorted((cache_folder() / "spool").glob("*/*/*"))

    def close(self) -> None:
        for reading in self._readings:
            reading.close()
        self.runner.close()


def numbered(start: int, stop: int, name: str = "line") -> list[str]:
    return [f"{name} {number}\n" for number in range(start, stop)]


def as_shown(lines: list[str]) -> list[bytes]:
    return [line.rstrip("\n").encode() for line in lines]
