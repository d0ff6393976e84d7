"""Where the log of a replica is: in files that its scheduler names, or streamed from there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.canned import CannedScheduler
from support.streaming import LinesScheduler, RecordScheduler
from support.waiting import wait_until

from torchx_tui.backends.api import Capabilities, Scheduler, Stream
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.logs.spool.reader import SpooledLog

HANDLE = "local_cwd://torchx/app"


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    with Runner(journal=Journal(tmp_path / "journal")) as made:
        yield made


def log_of(runner: Runner, scheduler: Scheduler) -> ReplicaLog:
    runner._schedulers.put("local_cwd", scheduler)
    return runner.replica_log(HANDLE, "trainer", 1)


def test_files_are_named(runner: Runner, tmp_path: Path) -> None:
    found = log_of(runner, CannedScheduler(logs=tmp_path))
    assert (found.role, found.replica, found.spool) == ("trainer", 1, None)
    assert found.combined == tmp_path / "app" / "trainer" / "1" / "combined.log"
    assert (found.stdout, found.stderr) == (None, None)


class Parted(LinesScheduler):
    """Gives lines, of each output alone too."""

    capabilities = Capabilities(log_streams=(Stream.STDOUT, Stream.STDERR, Stream.COMBINED))


class Exactly(LinesScheduler):
    """Gives the two outputs, and nothing that has both."""

    capabilities = Capabilities(log_streams=(Stream.STDOUT, Stream.STDERR))


class OneOutput(LinesScheduler):
    capabilities = Capabilities(log_streams=(Stream.STDOUT, Stream.COMBINED))


@pytest.mark.parametrize(
    ("made", "told"),
    [(LinesScheduler, False), (OneOutput, False), (Parted, True), (Exactly, True), (RecordScheduler, True)],
)
def test_outputs_can_be_told_apart_where_the_scheduler_has_both(
    runner: Runner, made: type[LinesScheduler], told: bool
) -> None:
    assert log_of(runner, made()).has_streams is told


@pytest.mark.parametrize(("made", "wanted"), [(Parted, b"only this\n"), (RecordScheduler, b"only this\nnot this\n")])
def test_one_output_alone_is_asked_for_where_it_is_a_stream_of_its_own(
    runner: Runner, made: type[LinesScheduler], wanted: bytes
) -> None:
    scheduler = made(replicas=2)
    scheduler.write(1, "only this\n", stream="o")
    scheduler.write(1, "not this\n", stream="e")
    scheduler.end()
    spool = log_of(runner, scheduler).spool
    assert isinstance(spool, SpooledLog)
    kept = spool.acquire("stdout")
    wait_until(lambda: kept.ended, "the log is complete")
    assert b"".join(segment.data.read(0, 100) for segment in kept.segments()) == wanted
    spool.release("stdout")
