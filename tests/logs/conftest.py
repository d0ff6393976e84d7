from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.reading import Instance
from support.streaming import LinesScheduler

from torchx_tui.logs.spool import feed as spool_feed
from torchx_tui.logs.spool import replica_spool as spool


@pytest.fixture
def instance() -> Iterator[Callable[..., Instance]]:
    made: list[Instance] = []

    def make(scheduler: LinesScheduler, **limits: int) -> Instance:
        made.append(Instance(scheduler, **limits))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_feed, "_FIRST_RETRY_S", 0.02)
    monkeypatch.setattr(spool_feed, "_MAX_RETRY_S", 0.1)
    monkeypatch.setattr(spool_feed, "_MAX_DISK_RETRY_S", 0.1)


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_MIN_SEGMENT_SIZE", 2000)
    monkeypatch.setattr(spool_feed, "_LIMIT_CHECK_BYTES", 500)
