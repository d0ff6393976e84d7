"""Where the log of a replica is: in files that its scheduler names, or streamed from there."""

import threading
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from support.canned import CannedScheduler
from support.streaming import LinesScheduler, RecordScheduler
from support.waiting import wait_until

from torchx_tui.backends.api import Capabilities, DescribeAppResponse, Scheduler, Stream
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.replica_logs import replica_logs
from torchx_tui.backends.runner import Runner
from torchx_tui.logs.spool.reader import SpooledLog
from torchx_tui.logs.spool.spools import LogSpools
from torchx_tui.specs import AppState, ReplicaStatus, Role, RoleStatus

HANDLE = "local_cwd://torchx/app"
Runners = Callable[[Scheduler], Runner]


@pytest.fixture
def runner_of(tmp_path):
    """Return what gives the runner of a scheduler."""
    with ExitStack() as stack:
        yield lambda scheduler: stack.enter_context(
            Runner(journal=Journal(tmp_path / "journal"), schedulers={"local_cwd": scheduler})
        )


def test_files_are_named(runner_of, tmp_path):
    found = runner_of(CannedScheduler(logs=tmp_path)).replica_log(HANDLE, "trainer", 1)
    assert (found.role, found.replica, found.spool) == ("trainer", 1, None)
    assert found.combined == tmp_path / "app" / "trainer" / "1" / "combined.log"
    assert (found.stdout, found.stderr) == (None, None)


@pytest.mark.parametrize(
    ("told", "files", "shown"),
    [
        ([1, 0], [], [0, 1]),
        ([0, 1, 2], [], [0, 1]),
        ([2, 3], [], [0, 1]),
        ([0, 1, 2, 3, 4], [2, 4], [0, 1, 2]),
        ([2, 1, 0], [0, 1, 2], [2, 1, 0]),
        ([], [], [0, 1]),
    ],
)
def test_what_the_backend_tells_of_beside_the_roles_is_shown_where_it_has_files(
    runner_of, tmp_path, told, files, shown
):
    class Tasks(LinesScheduler):
        """Has files of some replicas."""

        def log_path(self, app_id, role_name, k, streams):
            return tmp_path / str(k) if k in files else None

    runner = runner_of(Tasks())
    statuses = [RoleStatus("r", [ReplicaStatus(k, AppState.RUNNING, "r", "") for k in told])]
    described = DescribeAppResponse(roles=[Role("r", "", num_replicas=2)], roles_statuses=statuses)
    logs = replica_logs(runner.replica_log, HANDLE, described)
    assert [(log.role, log.replica) for log in logs] == [("r", k) for k in shown]


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
def test_outputs_can_be_told_apart_where_the_scheduler_has_both(runner_of, made, told):
    assert runner_of(made()).replica_log(HANDLE, "trainer", 1).has_streams is told


@pytest.mark.parametrize(("made", "wanted"), [(Parted, b"only this\n"), (RecordScheduler, b"only this\nnot this\n")])
def test_one_output_alone_is_asked_for_where_it_is_a_stream_of_its_own(runner_of, made, wanted):
    scheduler = made(replicas=2)
    scheduler.write(1, "only this\n", stream="o")
    scheduler.write(1, "not this\n", stream="e")
    scheduler.end()
    spool = runner_of(scheduler).replica_log(HANDLE, "trainer", 1).spool
    assert isinstance(spool, SpooledLog)
    kept = spool.acquire("stdout")
    wait_until(lambda: kept.ended, "the log is complete")
    assert b"".join(segment.data.read(0, 100) for segment in kept.segments()) == wanted
    spool.release("stdout")


def test_what_killed_programs_left_is_removed_in_the_background(runner_of, monkeypatch):
    removed = []
    monkeypatch.setattr(LogSpools, "remove_stale", lambda _: removed.append(threading.current_thread().daemon))
    runner_of(CannedScheduler()).remove_stale_spools()
    wait_until(lambda: removed == [True], "they are removed")


def spooled(log):
    """Return the log, which is no file here."""
    assert isinstance(log.spool, SpooledLog)
    return log.spool


def test_logs_that_would_go_with_a_cancelled_job_are_completed_first(runner_of):
    scheduler = LinesScheduler()
    scheduler.capabilities = Capabilities(logs_after_cancel="they are gone")
    runner = runner_of(scheduler)
    runner.cancel(HANDLE)  # nobody has read any
    assert scheduler.state is AppState.CANCELLED
    scheduler.state = AppState.RUNNING
    spool = spooled(runner.replica_log(HANDLE, "trainer", 0))
    kept = spool.acquire("combined")
    lines = [f"line {number}\n" for number in range(500)]
    scheduler.write(0, *lines)
    runner.cancel(HANDLE)
    assert b"".join(segment.data.read(0, 10_000) for segment in kept.segments()) == "".join(lines).encode()
    spool.release("combined")


def test_no_more_is_kept_of_logs_than_the_settings_say(tmp_path):
    scheduler = LinesScheduler()
    with Runner(
        journal=Journal(tmp_path), spool_limits=(1 << 20, 1 << 21), schedulers={"local_cwd": scheduler}
    ) as runner:
        spool = spooled(runner.replica_log(HANDLE, "trainer", 0))
        kept = spool.acquire("combined")
        scheduler.write(0, *("x" * 1023 + "\n" for _ in range(2048)))
        scheduler.end()
        wait_until(lambda: kept.ended, "the log is read")
        assert 0 < kept.size <= 1 << 20
        assert kept.dropped_lines > 0
        spool.release("combined")
    with Runner(journal=Journal(tmp_path), schedulers={"local_cwd": scheduler}) as runner:
        spool = spooled(runner.replica_log(HANDLE, "trainer", 0))
        kept = spool.acquire("combined")
        wait_until(lambda: kept.ended, "the log is read")
        assert kept.size >= 2 << 20
        spool.release("combined")
