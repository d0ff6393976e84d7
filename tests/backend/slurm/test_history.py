"""Jobs that have left the queue: accounting knows them, is asked soon after one left, and may fail."""

import time

import pytest
from support.background import in_background
from support.command import command_runner

from torchx_tui.backends.slurm.scheduler import SlurmScheduler
from torchx_tui.specs.errors import BackendUnavailableError, SchedulerError
from torchx_tui.specs.status import AppState

REFUSED = "sacct: error: Problem talking to the database: Connection refused\n"
OFF = "Slurm accounting storage is disabled\n"


@pytest.fixture
def session(slurm):
    """Return what starts a session as another command would: it knows what is kept in files alone."""
    return lambda: SlurmScheduler("torchx", interval=0, quick_interval=0)


def ids(scheduler):
    return sorted(row.app_id for row in scheduler.list())


def test_the_last_history_is_kept_and_asked_for_soon_again(session, commands, clock):
    commands.queue({})
    commands.accounted({"JobIDRaw": "3"})
    assert ids(session()) == ["3", "7"]
    clock.now += 3600
    commands.answer("sacct", err=REFUSED, code=1)
    late = session()
    assert ids(late) == ["3", "7"]
    assert late.missing_jobs().startswith("jobs that have left the queue since ")
    assert "may be missing: accounting does not answer: " in late.missing_jobs()
    assert late.missing_jobs().endswith("Connection refused")
    # It is not asked each time, but not only after the usual quarter of an hour either.
    asked = len(commands.calls("sacct"))
    assert ids(late) == ["3", "7"]
    assert len(commands.calls("sacct")) == asked
    clock.now += 61
    commands.accounted({"JobIDRaw": "3"}, {"JobIDRaw": "4"})
    assert ids(session()) == ["3", "4", "7"]
    assert session().missing_jobs() == ""


def test_a_slow_accounting_hides_no_queue(session, commands, clock):
    commands.queue({})
    commands.accounted({"JobIDRaw": "3"})
    assert ids(session()) == ["3", "7"]
    clock.now += 3600
    commands.answer("sacct", seconds=20)
    late = session()
    # It does not wait for the end of the query.
    assert ids(late) == ["3", "7"]
    assert "accounting does not answer: no answer within" in late.missing_jobs()
    assert ids(late) == ["3", "7"]


def test_a_query_that_runs_is_not_late(session, commands):
    commands.queue({})
    commands.answer("sacct", seconds=1)
    first = session()
    reading = in_background(first.list)
    while not reading.done():
        assert first.missing_jobs() == ""
    assert ids(first) == ["7"]


def test_an_ended_job_is_read_while_the_controller_is_down(session, commands, clock, tmp_path):
    log = tmp_path / "3.out"
    log.write_text("loss 0.5\n")
    clock.now = time.time()
    # A job stays in the queue for a while after its end.
    commands.queue({"JobID": "2", "State": "FAILED"}, {"JobID": "4"})
    commands.accounted({"JobIDRaw": "3", "StdOut": str(log)}, {"JobIDRaw": "4", "State": "NODE_FAIL"})
    assert ids(session()) == ["2", "3", "4"]
    clock.now += 61
    commands.answer("squeue", err="Unable to contact slurm controller (connect failure)\n", code=1)
    late = session()
    assert late.describe("2").state is AppState.FAILED
    assert late.describe("3").state is AppState.SUCCEEDED
    assert list(late.log_iter("3", "batch")) == ["loss 0.5\n"]
    # Accounting says that 4 has ended, but it was requeued.
    for job_id in ("4", "5"):
        with pytest.raises(BackendUnavailableError):
            late.describe(job_id)


@pytest.mark.parametrize(
    ("error", "words"),
    [(REFUSED, "jobs that have left the queue may be missing: "), (OFF, "this cluster has no accounting: jobs are")],
)
def test_doctor_tells_of_accounting(slurm, commands, error, words):
    commands.answer("sacct", err=error, code=1)
    (finding,) = [finding for finding in slurm.check() if "jobs" in finding.what]
    assert finding.level == "warning"
    assert finding.what.startswith(words)


def test_history_that_never_answered(session, commands, clock):
    commands.queue({})
    commands.answer("sacct", err=REFUSED, code=1)
    scheduler = session()
    assert ids(scheduler) == ["7"]
    assert scheduler.missing_jobs().startswith("jobs that have left the queue may be missing: accounting does not")
    # It is not said that there is no such job.
    with pytest.raises(SchedulerError, match="8 is not in the queue, and accounting does not answer"):
        scheduler.describe("8")


@pytest.mark.parametrize("state", ["RUNNING", "COMPLETED"], ids=["last seen running", "last seen at its end"])
def test_a_job_that_left_the_queue_is_asked_for_at_once(session, commands, clock, state):
    commands.queue({"State": state})
    commands.answer("sacct")
    assert ids(session()) == ["7"]
    clock.now += 15
    commands.queue()
    commands.accounted({})
    # The first session that looks and those after it know how it ended.
    for _ in range(3):
        (row,) = session().list()
        assert (row.app_id, row.state) == ("7", AppState.SUCCEEDED)


def test_lost_job_is_asked_for_by_its_id(session, commands, clock):
    commands.queue({})
    commands.answer("sacct")
    scheduler = session()
    assert ids(scheduler) == ["7"]
    commands.queue()
    commands.answer("squeue-7", err="slurm_load_jobs error: Invalid job id specified", code=1)
    clock.now += 120
    assert scheduler.list()[0].state is AppState.UNKNOWN
    # Accounting lags behind, and is not due yet.
    commands.accounted({"State": "TIMEOUT"})
    assert scheduler.describe("7").state is AppState.FAILED


def test_a_job_that_nobody_saw_in_the_queue(session, commands, clock):
    commands.queue()
    commands.answer("sacct")
    assert ids(session()) == []
    clock.now += 90
    commands.accounted({})
    assert ids(session()) == ["7"]


def test_while_the_queue_stays_the_same_accounting_is_not_asked(session, commands, clock):
    commands.queue({})
    commands.accounted({"JobIDRaw": "3"})
    scheduler = session()
    scheduler.list()
    asked = len(commands.calls("sacct"))
    for _ in range(30):
        clock.now += 25
        scheduler.list()
    assert len(commands.calls("sacct")) == asked


def test_without_accounting_an_end_is_not_known(slurm, commands):
    commands.queue({})
    commands.answer("sacct", err=OFF, code=1)
    assert slurm.list()[0].state is AppState.RUNNING
    commands.queue()
    (row,) = slurm.list()
    assert row.state is AppState.UNKNOWN
    assert row.finished_at is not None
    assert row.msg == "it has left the queue, and this cluster has no accounting: how it ended is not known"
    assert slurm.describe("7").has_ended
    assert slurm.missing_jobs() == ""
    with pytest.raises(SchedulerError, match="8 is not in the queue, and this cluster has no accounting"):
        slurm.describe("8")


def test_wait_ends_where_nobody_knows_the_end(session, commands, clock, capsys, monkeypatch):
    clock.now = time.time()
    commands.queue({})
    commands.answer("sacct", err=OFF, code=1)
    assert ids(session()) == ["7"]
    clock.now += 120
    commands.queue()
    ended = command_runner(capsys, monkeypatch)("wait", "slurm://torchx/7")
    assert ended.code == 125
    assert "this cluster has no accounting: how it ended is not known" in ended.err
