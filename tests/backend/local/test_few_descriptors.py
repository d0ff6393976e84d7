"""Apps whose logs need more descriptors than the supervisor may have."""

import os
import resource
import signal
import sys
from pathlib import Path

import pytest
from backend.local.support import launch_from_another_process
from support.waiting import wait_until

from torchx_tui.specs.status import AppState

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is raised on Linux alone")


def limited(soft, hard):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(("limit", "replicas"), [(1024, 260), (256, 64), (40, 20)])
def test_few_descriptors_run_every_replica(local, limit, replicas):
    soft = limit - 4
    app_id = launch_from_another_process(local.root, "ulimit -Sn; ulimit -Hn", replicas, limited(soft, limit))
    run = local.ended(app_id, 60)
    assert (run.state, [entry["exit_code"] for entry in run.replicas]) == (AppState.SUCCEEDED, [0] * replicas)
    # What the supervisor raises for itself does not reach the replicas.
    for k in (0, replicas - 1):
        assert local.lines(app_id, k=k) == [f"{soft}\n", f"{limit}\n"]
        assert (run.replica_folder("r", k) / "combined.log").read_text() == f"{soft}\n{limit}\n"


@pytest.mark.parametrize("by_signal", [False, True])
def test_few_descriptors_leave_room_to_cancel(local, by_signal):
    app_id = launch_from_another_process(local.root, "sleep 300", 64, limited(256, 256))
    pid = local.running(app_id)["pid"]
    if by_signal:
        os.kill(pid, signal.SIGTERM)
    else:
        local.scheduler.cancel(app_id)
    run = local.ended(app_id)
    assert (run.state, {entry["exit_code"] for entry in run.replicas}) == (AppState.CANCELLED, {-signal.SIGTERM})


def test_files_of_an_ended_replica_are_closed(local):
    app_id = local.start("echo started; [ ${replica_id} = 0 ] || sleep 300", replicas=2)
    descriptors = Path(f"/proc/{local.running(app_id)['pid']}/fd")

    def open_files():
        try:
            targets = [os.readlink(entry) for entry in descriptors.iterdir()]
        except FileNotFoundError:  # one was closed while we looked
            return []
        return [sum(f"/r/{k}/" in target for target in targets) for k in range(2)]

    wait_until(lambda: open_files() == [0, 4], "closing")
    assert local.lines(app_id, k=0, should_tail=False) == ["started\n"]
