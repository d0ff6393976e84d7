"""Schedulers that do not remember who cancelled an app: the Runner does."""

import time
from dataclasses import replace

import pytest
from support.canned import CannedScheduler

from torchx_tui.backends.runner import Runner
from torchx_tui.backends.types import Capabilities, DescribeAppResponse, StateChange
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState, ReplicaStatus, RoleStatus

HANDLE = "local_docker://torchx/one-x"
ENDED = (AppState.FAILED, AppState.SUCCEEDED)


class Forgetful(CannedScheduler):
    """Calls an app that was cancelled failed, as a container engine does."""

    capabilities = Capabilities(remembers_cancel=False)

    def __init__(self, journal):
        super().__init__()
        self.journal = journal
        self.noted = []

    def put(self, app_id, state):
        """Set what is known of an app."""
        now = time.time()
        ended_at = now if state in ENDED else None
        message = "exit 143 (SIGTERM): r/0"
        self.add(app_id, state, 1)
        self.apps[app_id] = replace(self.apps[app_id], msg=message if ended_at else "")
        # The second replica failed long before, the third at the same instant as the cancel.
        cancelled_at = next((record.cancelled_at for record in self.journal.records()), None)
        times = (ended_at, 1.0, *([cancelled_at] if ended_at and cancelled_at else []))
        timeline = [StateChange(AppState.RUNNING, now - 100), StateChange(state, now)]
        self.described[app_id] = DescribeAppResponse(
            app_id,
            state,
            msg=message,
            started_at=now - 100,
            finished_at=ended_at,
            timeline=timeline if ended_at else timeline[:1],
            roles_statuses=[
                RoleStatus("r", [ReplicaStatus(k, state, "r", "", finished_at=at) for k, at in enumerate(times)])
            ],
        )

    def describe(self, app_id):
        found = self.described.get(app_id)
        return None if found is None else replace(found)

    def cancel(self, app_id):
        self.noted.append(next((record.cancelled_at for record in self.journal.records()), None))
        self._answer()


@pytest.fixture
def scheduler(journal):
    return Forgetful(journal)


@pytest.fixture
def make_runner(scheduler, journal):
    return lambda: Runner(journal=journal, schedulers={"local_docker": scheduler})


@pytest.fixture
def runner(make_runner):
    return make_runner()


@pytest.fixture
def launched(scheduler, journal):
    """Put a running job into the journal."""
    record = journal.record_intent(AppDef("one", [Role("r", "", entrypoint="x")]), "local_docker", "torchx", {})
    journal.update(record, app_id="one-x")
    scheduler.put("one-x", AppState.RUNNING)


def test_every_answer_says_cancelled(launched, runner, make_runner, scheduler):
    runner.job(HANDLE).cancel()
    (row,) = runner.list("local_docker")
    assert (row.state, row.msg.startswith("being cancelled by ")) == (AppState.RUNNING, True)
    scheduler.put("one-x", AppState.FAILED)
    # Another process reads the same journal.
    for asked in (runner, make_runner()):
        (row,) = asked.list("local_docker")
        described = asked.job(HANDLE).describe()
        assert row.state == described.state == asked.job(HANDLE).status().state == AppState.CANCELLED
        assert row.msg.startswith("cancelled by ")
        assert described.msg.endswith("after 1m")
        assert [change.state for change in described.timeline] == [AppState.RUNNING, AppState.CANCELLED]
        states = [one.state for one in described.roles_statuses[0].replicas]
        assert states == [AppState.CANCELLED, AppState.FAILED, AppState.CANCELLED]


def test_an_app_that_succeeds_when_cancelled_is_cancelled(launched, runner, scheduler):
    runner.job(HANDLE).cancel()
    scheduler.put("one-x", AppState.SUCCEEDED)
    assert runner.list("local_docker")[0].state == AppState.CANCELLED


def test_an_app_that_had_ended_is_not_cancelled(launched, runner, scheduler, journal):
    scheduler.put("one-x", AppState.FAILED)
    runner.job(HANDLE).cancel()
    runner.job("local_docker://torchx/none").cancel()
    assert (scheduler.noted, journal.records()[0].cancelled_at) == ([], None)
    assert runner.list("local_docker")[0].state == AppState.FAILED


def test_the_first_cancel_is_noted_before_it_happens(launched, runner, scheduler, journal):
    runner.job(HANDLE).cancel()
    runner.job(HANDLE).cancel()
    first, second = scheduler.noted
    assert first == second == journal.records()[0].cancelled_at
    assert first is not None


def test_a_refused_cancel_is_not_noted(launched, runner, scheduler, journal):
    scheduler.error = SchedulerError("no")
    with pytest.raises(SchedulerError, match="no"):
        runner.job(HANDLE).cancel()
    assert journal.records()[0].cancelled_at is None
    scheduler.error = None
    scheduler.put("one-x", AppState.FAILED)
    assert runner.list("local_docker")[0].state == AppState.FAILED


def test_a_cancel_of_an_others_job_is_remembered(runner, scheduler):
    scheduler.put("theirs", AppState.RUNNING)
    runner.job("local_docker://other/theirs").cancel()
    for state in (AppState.CANCELLED, AppState.FAILED):
        scheduler.put("theirs", AppState.FAILED)
        assert runner.list("local_docker")[0].state == state
        runner.job("local_docker://torchx/theirs").delete()
