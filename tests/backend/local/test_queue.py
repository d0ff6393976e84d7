"""A cap on how many apps run at once."""

import os
import signal
from itertools import pairwise

from torchx_tui.specs.status import AppState


def test_apps_wait_for_their_turn(make_local):
    local = make_local(max_running=1)
    script = f"while [ ! -e {local.root}/go ]; do sleep 0.05; done; echo mine; sleep 0.2"
    ids = [local.start(script) for _ in range(3)]
    local.pending(ids[2])
    assert local.describe(ids[2]).msg == f"waits for {ids[0]}, {ids[1]}: at most 1 run at once here"
    assert local.lines(ids[2]) == []
    (local.root / "go").touch()
    assert local.lines(ids[2], should_tail=True) == ["mine\n"]
    runs = [local.end_as(app_id, AppState.SUCCEEDED) for app_id in ids]
    # One after the other, in the order of their launches.
    for before, after in pairwise(runs):
        assert before.document["finished_at"] <= after.document["started_at"]
    states = [change.state.name for change in local.describe(ids[2]).timeline]
    assert states == ["SUBMITTED", "PENDING", "RUNNING", "SUCCEEDED"]


def test_cap_counts_the_apps_of_every_session(make_local):
    first, second = make_local(max_running=2), make_local(max_running=2)
    ids = [first.start_running(), first.start_running()]
    waiting = second.start("exit 0")
    second.pending(waiting)
    first.cancel(ids[0])
    second.end_as(waiting, AppState.SUCCEEDED)
    assert first.run(ids[1]).state is AppState.RUNNING


def test_waiting_app_is_cancelled(make_local):
    local = make_local(max_running=1)
    first, second = local.start("sleep 300"), local.start("echo never")
    local.pending(second)
    local.cancel(second)
    assert local.lines(second) == []
    assert local.running(first)


def test_killed_supervisors_do_not_hold_their_place(make_local):
    local = make_local(max_running=1)
    first = local.start_running()
    os.kill(local.state(first)["replicas"][0]["pid"], signal.SIGSTOP)
    local.kill_supervisor(first)
    os.kill(local.state(first)["replicas"][0]["pid"], signal.SIGKILL)
    assert local.finish("exit 0").state is AppState.SUCCEEDED
    assert len(list((local.root / "turns").iterdir())) == 1
    local.scheduler.prune()
    assert list((local.root / "turns").iterdir()) == []


def test_without_a_cap_nothing_waits(local):
    ids = [local.start("exec sleep 300") for _ in range(5)]
    for app_id in ids:
        assert [state for state, _ in local.running(app_id)["timeline"]] == ["SUBMITTED", "RUNNING"]
