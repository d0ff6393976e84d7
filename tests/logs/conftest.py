from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.reading import Instance
from support.streaming import LinesScheduler

from torchx_tui.logs.source import file_source as source
from torchx_tui.logs.spool import feed as spool_feed
from torchx_tui.logs.spool import replica_spool as spool
from torchx_tui.logs.view import line_index, match_index, merge, scanner


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
    monkeypatch.setattr(spool_feed, "FIRST_RETRY_S", 0.02)
    monkeypatch.setattr(spool_feed, "MAX_RETRY_S", 0.1)
    monkeypatch.setattr(spool_feed, "MAX_DISK_RETRY_S", 0.1)


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "MIN_SEGMENT_SIZE", 2000)
    monkeypatch.setattr(spool_feed, "LIMIT_CHECK_BYTES", 500)


@pytest.fixture
def small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (source, "BLOCK", 64), (source, "FIRST_READ", 20), (source, "POLL_LIMIT", 90), (merge, "BLOCK", 64),
            (line_index, "BLOCK", 64), (scanner, "_DENSE_MATCHES", 2),
            (match_index, "BLOCK", 64), (match_index, "_FIRST_BATCH_ROWS", 2), (match_index, "_MAX_BATCH_ROWS", 3),
        ):  # fmt: skip
            patch.setattr(module, name, value)
        yield
