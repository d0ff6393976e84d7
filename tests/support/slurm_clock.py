"""A clock for the shared answers of Slurm that a test moves."""

from __future__ import annotations

import pytest

from torchx_tui.backends.slurm import shared_answer


class Clock:
    """A clock in the place of the module's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_795_258_000.0
        monkeypatch.setattr(shared_answer, "time", self)

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
