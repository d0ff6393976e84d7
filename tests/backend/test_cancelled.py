"""Schedulers that do not remember who cancelled an app: the Runner does."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from support.canned import CannedScheduler

from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.types import Capabilities, DescribeAppResponse, StateChange
from torchx_tui.specs import AppDef, AppState, ReplicaStatus, Role, RoleStatus, SchedulerError


class Forgetful(CannedScheduler):
    """Calls an app that was cancelled failed, as a container engine does."""

    capabilities = Capabilities(remembers_cancel=False)

    def __init__(self, journal):
        super().__init__()
        self.journal = journal
        self.noted: list[float | None] = []
        self.refuses = False

    def put(self, app_id, state):
        """Set what is known of an app."""
        now = time.time()
        self.add(app_id, state, 1)
        ended = state in (AppState.FAILED, AppState.SUCCEEDED)
        self.apps[app_id] = replace(self.apps[app_id], msg="exit 143 (SIGTERM): r/0" if ended else "")
        replica = ReplicaStatus(0, state, "r", "here", finished_at=now if ended else None)
        self.described[app_id] = DescribeAppResponse(
            app_id,
            state,
            msg="exit 143 (SIGTERM): r/0",
            started_at=now - 100,
            finished_at=now if ended else None,
            timeline=[StateChange(AppState.RUNNING, now - 100), *([StateChange(state, now)] if ended else [])],
            roles_statuses=[RoleStatus("r", [replica, replace(replica, id=1, finished_at=1.0)])],
        )

    def describe(self, app_id):
        found = self.described.get(app_id)
        return None if found is None else replace(found)

    def list(self, cfg=None):
        return [replace(row) for row in self.apps.values()]

    def cancel(self, app_id):
        self.noted.append(next((record.cancelled_at for record in self.journal.records()), None))
        if self.refuses:
            raise SchedulerError("no")


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path)


@pytest.fixture
def scheduler(journal):
    return Forgetful(journal)


def make_runner(scheduler, journal):
    return Runner(journal=journal, schedulers={"local_docker": scheduler})


@pytest.fixture
def runner(scheduler, journal):
    return make_runner(scheduler, journal)


@pytest.fixture
def handle(scheduler, journal):
    """Return the handle of a job that runs and stands in the journal."""
    record = journal.record_intent(AppDef("one", [Role("r", "", entrypoint="x")]), "local_docker", "torchx", {})
    journal.update(record, app_id="one-x")
    scheduler.put("one-x", AppState.RUNNING)
    return "local_docker://torchx/one-x"


def test_it_is_written_before_the_scheduler_is_asked(runner, scheduler, handle):
    runner.cancel(handle)
    (noted,) = scheduler.noted
    assert noted is not None


def test_every_answer_says_cancelled(runner, scheduler, journal, handle):
    runner.cancel(handle)
    (row,) = runner.list("local_docker")
    assert (row.state, row.msg.startswith("being cancelled by ")) == (AppState.RUNNING, True)
    scheduler.put("one-x", AppState.FAILED)
    at_once = ReplicaStatus(2, AppState.FAILED, "r", "here", finished_at=journal.records()[0].cancelled_at)
    scheduler.described["one-x"].roles_statuses[0].replicas.append(at_once)
    # Another process reads the same journal.
    for asked in (runner, make_runner(scheduler, journal)):
        (row,) = asked.list("local_docker")
        described = asked.describe(handle)
        status = asked.status(handle)
        assert described is not None
        assert status is not None
        assert row.state == described.state == status.state == AppState.CANCELLED
        assert row.msg.startswith("cancelled by ")
        assert described.msg.endswith("after 1m")
        assert [change.state for change in described.timeline] == [AppState.RUNNING, AppState.CANCELLED]
        # The second replica had failed long before; the third was ended at once.
        states = [one.state for one in described.roles_statuses[0].replicas]
        assert states == [AppState.CANCELLED, AppState.FAILED, AppState.CANCELLED]


def test_one_that_ends_well_when_it_is_cancelled_was_cancelled(runner, scheduler, handle):
    runner.cancel(handle)
    scheduler.put("one-x", AppState.SUCCEEDED)
    assert runner.list("local_docker")[0].state == AppState.CANCELLED


def test_one_that_had_ended_is_left_as_it_was(runner, scheduler, journal, handle):
    scheduler.put("one-x", AppState.FAILED)
    runner.cancel(handle)
    assert scheduler.noted == []
    assert journal.records()[0].cancelled_at is None
    assert runner.list("local_docker")[0].state == AppState.FAILED


def test_the_first_time_stays(runner, journal, handle):
    runner.cancel(handle)
    first = journal.records()[0].cancelled_at
    runner.cancel(handle)
    assert journal.records()[0].cancelled_at == first


def test_a_refused_cancel_is_not_noted(runner, scheduler, journal, handle):
    scheduler.refuses = True
    with pytest.raises(SchedulerError, match="no"):
        runner.cancel(handle)
    assert journal.records()[0].cancelled_at is None
    scheduler.put("one-x", AppState.FAILED)
    assert runner.list("local_docker")[0].state == AppState.FAILED


def test_a_job_of_someone_else_is_remembered_by_this_process(runner, scheduler):
    scheduler.put("theirs", AppState.RUNNING)
    runner.cancel("local_docker://other/theirs")
    scheduler.put("theirs", AppState.FAILED)
    assert runner.list("local_docker")[0].state == AppState.CANCELLED
    runner.delete("local_docker://torchx/theirs")
    scheduler.put("theirs", AppState.FAILED)
    assert runner.list("local_docker")[0].state == AppState.FAILED


def test_an_unknown_job_is_nothing_to_cancel(runner, scheduler):
    runner.cancel("local_docker://torchx/none")
    assert scheduler.noted == []
