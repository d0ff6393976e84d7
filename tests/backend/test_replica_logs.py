"""Where the log of a replica is: in files that its scheduler names, or streamed from there."""

import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from backend.tables import TABLES
from support.canned import CannedScheduler
from support.streaming import LinesScheduler, RecordScheduler
from support.waiting import wait_until

from torchx_tui.backends.api import Capabilities, DescribeAppResponse, Stream
from torchx_tui.backends.runner import Runner
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.logs.spool.spools import LogSpools
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.roles import Role
from torchx_tui.specs.status import AppState, ReplicaStatus, RoleStatus

HANDLE = "local_cwd://torchx/app"


class SomeFiles(LinesScheduler):
    """Has files of some replicas."""

    files: dict[int, dict[Stream, Path]]

    def log_files(self, app_id, role_name, k):
        if k not in self.files:
            raise SchedulerError(f"{app_id} has no log")
        return self.files[k]


@pytest.fixture
def runner_of(journal):
    """Return a function that gives the runner of a scheduler."""
    with ExitStack() as stack:
        yield lambda scheduler, **limits: stack.enter_context(
            Runner(journal=journal, schedulers={"local_cwd": scheduler}, **limits)
        )


@contextmanager
def reading(runner, k=0, stream="combined"):
    """Give what is kept of a streamed log, which is read until the end."""
    spool = runner.job(HANDLE).replica_log("trainer", k).spool
    yield spool.acquire(stream, runner)
    spool.release(stream, runner)


def data(kept):
    return b"".join(part.data.read(0, 10_000) for part in kept.parts)


def test_files_are_named(runner_of, tmp_path):
    found = runner_of(CannedScheduler(logs=tmp_path)).job(HANDLE).replica_log("trainer", 1)
    assert found == ReplicaLog("trainer", 1, combined=tmp_path / "app/trainer/1/combined.log")


@pytest.mark.parametrize(("replicas", "files", "shown"), TABLES["replica_logs"]["shown"])
def test_replicas_beyond_the_role_are_shown_with_files(runner_of, tmp_path, replicas, files, shown):
    scheduler = SomeFiles()
    scheduler.files = {k: {Stream.COMBINED: tmp_path / str(k)} for k in files}
    statuses = [RoleStatus("r", [ReplicaStatus(k, AppState.RUNNING, "r", "") for k in replicas])]
    described = DescribeAppResponse(roles=[Role("r", "", num_replicas=2)], roles_statuses=statuses)
    logs = runner_of(scheduler).job(HANDLE).replica_logs(described)
    assert [(log.role, log.replica) for log in logs] == [("r", k) for k in shown]
    assert [log.spool is None for log in logs] == [k in files for k in shown]


OUT, ERR, BOTH = Stream.STDOUT, Stream.STDERR, Stream.COMBINED


@pytest.mark.parametrize(
    ("scheduler", "streams", "has_streams"),
    [
        (LinesScheduler, (BOTH,), False),
        (LinesScheduler, (OUT, BOTH), False),
        (LinesScheduler, (OUT, ERR, BOTH), True),
        (LinesScheduler, (OUT, ERR), True),
        (RecordScheduler, RecordScheduler.capabilities.log_streams, True),
    ],
)
def test_outputs_are_separate_if_there_are_two(runner_of, scheduler, streams, has_streams):
    made = scheduler(replicas=2)
    made.capabilities = Capabilities(log_streams=streams)
    runner = runner_of(made)
    assert runner.job(HANDLE).replica_log("trainer", 1).has_streams is has_streams
    if not has_streams:
        return
    made.write(1, "only this\n", stream="o")
    made.write(1, "not this\n", stream="e")
    made.end()
    with reading(runner, 1, "stdout") as kept:
        wait_until(lambda: kept.ended, "the log is complete")
        # Records have the letter of their output.
        assert data(kept) == b"only this\n" + (b"not this\n" if scheduler is RecordScheduler else b"")


def test_stale_spools_are_removed_in_the_background(runner_of, monkeypatch):
    removed = []
    monkeypatch.setattr(LogSpools, "remove_stale", lambda _: removed.append(threading.current_thread().daemon))
    runner_of(CannedScheduler()).remove_stale_spools()
    wait_until(lambda: removed == [True], "they are removed")


def test_logs_are_completed_before_a_cancel_removes_them(runner_of):
    scheduler = LinesScheduler()
    scheduler.capabilities = Capabilities(logs_after_cancel="they are gone")
    runner = runner_of(scheduler)
    runner.job(HANDLE).cancel()  # no log has been read
    assert scheduler.state is AppState.CANCELLED
    scheduler.state = AppState.RUNNING
    lines = [f"line {number}\n" for number in range(500)]
    with reading(runner) as kept:
        scheduler.write(0, *lines)
        runner.job(HANDLE).cancel()
        assert data(kept) == "".join(lines).encode()


@pytest.mark.parametrize(("limits", "is_cut"), [({"spool_limits": (1 << 20, 1 << 21)}, True), ({}, False)])
def test_logs_are_kept_up_to_the_limits(runner_of, limits, is_cut):
    scheduler = LinesScheduler()
    scheduler.write(0, *("x" * 1023 + "\n" for _ in range(2048)))
    scheduler.end()
    with reading(runner_of(scheduler, **limits)) as kept:
        wait_until(lambda: kept.ended, "the log is read")
        assert (0 < kept.size <= 1 << 20, kept.size >= 2 << 20, kept.dropped_lines > 0) == (is_cut, not is_cut, is_cut)
