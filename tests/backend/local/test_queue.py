"""A cap on how many apps run at once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from backend.local.support import Local
from support.waiting import wait_until

from torchx_tui.specs import AppState


def test_apps_wait_for_their_turn(make_local: Callable[..., Local]) -> None:
    local = make_local(max_running=1)
    ids = [local.start(f"while [ ! -e {local.root}/go ]; do sleep 0.05; done; sleep 0.2") for _ in range(3)]
    wait_until(lambda: local.run(ids[2]).state == AppState.PENDING, "PENDING")
    described = local.scheduler.describe(ids[2])
    assert described is not None
    assert described.msg == f"waits for {ids[0]}, {ids[1]}: at most 1 run at once here"
    (local.root / "go").touch()
    runs = [local.ended(app_id) for app_id in ids]
    assert [run.state for run in runs] == [AppState.SUCCEEDED] * 3
    # One after the other, in the order of their launches.
    for before, after in pairwise(runs):
        assert before.document["finished_at"] <= after.document["started_at"]
    states = [change.state.name for change in (local.scheduler.describe(ids[2]) or described).timeline]
    assert states == ["SUBMITTED", "PENDING", "RUNNING", "SUCCEEDED"]


def test_the_cap_counts_the_apps_of_every_session(make_local: Callable[..., Local]) -> None:
    first = make_local(max_running=2)
    ids = [first.start("sleep 3600"), first.start("sleep 3600")]
    for app_id in ids:
        first.running(app_id)
    second = make_local(max_running=2)
    waiting = second.start("exit 0")
    wait_until(lambda: second.run(waiting).state == AppState.PENDING, "PENDING")
    first.scheduler.cancel(ids[0])
    assert second.ended(waiting).state == AppState.SUCCEEDED
    assert first.run(ids[1]).state == AppState.RUNNING


def test_a_waiting_app_is_cancelled(make_local: Callable[..., Local]) -> None:
    local = make_local(max_running=1)
    first, second = local.start("sleep 3600"), local.start("echo never")
    wait_until(lambda: local.run(second).state == AppState.PENDING, "PENDING")
    local.scheduler.cancel(second)
    assert local.ended(second).state == AppState.CANCELLED
    assert local.lines(second) == []
    assert local.running(first)


def test_killed_supervisors_do_not_hold_their_place(make_local: Callable[..., Local]) -> None:
    import os
    import signal

    local = make_local(max_running=1)
    first = local.start("exec sleep 300")
    state = local.running(first)
    os.kill(state["pid"], signal.SIGKILL)
    os.kill(state["replicas"][0]["pid"], signal.SIGKILL)
    assert local.ended(local.start("exit 0")).state == AppState.SUCCEEDED
    assert len(list((local.root / "turns").iterdir())) == 1
    local.scheduler.prune()
    assert list((local.root / "turns").iterdir()) == []


def test_without_a_cap_nothing_waits(local: Local) -> None:
    ids = [local.start("exec sleep 300") for _ in range(5)]
    for app_id in ids:
        assert [state for state, _ in local.running(app_id)["timeline"]] == ["SUBMITTED", "RUNNING"]
