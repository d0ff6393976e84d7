"""Apps that end with the process that launched them when it gets a signal."""

import os
import signal
import subprocess

import pytest
from backend.local.support import launcher_arguments
from support.background import in_background
from support.waiting import PATIENCE

from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.status import AppState

_THEN = """
mine, free = launch(), launch()
scheduler.detach(free)
try:
    print(mine, free, flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(7)
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 7), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_signal_ends_own_apps(local, number, code):
    found = local.start_running()
    launcher = subprocess.Popen(
        launcher_arguments(local.root, "sleep 300", then=_THEN), stdout=subprocess.PIPE, text=True
    )
    assert launcher.stdout is not None
    mine, free = launcher.stdout.readline().split()
    for app_id in (mine, free):
        local.running(app_id)
    os.kill(launcher.pid, number)
    assert launcher.wait(PATIENCE) == code
    launcher.stdout.close()
    if number == signal.SIGKILL:
        assert local.run(mine).state is AppState.RUNNING
    else:
        local.end_as(mine, AppState.CANCELLED)
    # Jobs that it found, or detached, are never ended.
    assert [local.run(app_id).state for app_id in (free, found)] == [AppState.RUNNING] * 2


@pytest.mark.parametrize("failure", [SchedulerError("refused"), OSError("no room")], ids=repr)
def test_own_apps_end_one_by_one(local, monkeypatch, failure):
    refused, free, last, ended = [local.start("sleep 300") for _ in range(3)] + [local.finish("exit 0").app_id]
    assert local.scheduler.own_app_ids() == [refused, free, last]
    local.scheduler.detach(free)
    cancel = local.scheduler.cancel

    def refuse(app_id):
        if app_id == refused:
            raise failure
        cancel(app_id)

    with monkeypatch.context() as patched:
        patched.setattr(local.scheduler, "cancel", refuse)
        local.scheduler.end_own()
    local.end_as(last, AppState.CANCELLED)
    assert local.scheduler.own_app_ids() == [refused]
    assert (local.run(free).over, local.run(ended).state) == (False, AppState.SUCCEEDED)


def test_close_restores_signals_and_ends_nothing(local):
    before = signal.getsignal(signal.SIGTERM)
    scheduler = LocalScheduler("s", root=local.root)
    assert signal.getsignal(signal.SIGTERM) != before
    app_id = local.start("sleep 300")
    scheduler.close()
    scheduler.close()
    assert signal.getsignal(signal.SIGTERM) == before
    assert not local.run(app_id).over


def test_only_the_main_thread_handles_signals(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    in_background(lambda: LocalScheduler("s", root=tmp_path).close()).result(PATIENCE)
    assert signal.getsignal(signal.SIGTERM) == before
