"""Apps that end with the process that launched them, when that is told to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from backend.local.support import Local
from support.waiting import PATIENCE

from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.specs import AppState, SchedulerError

_LAUNCHER = (
    "import sys, time\n"
    "from pathlib import Path\n"
    "from torchx_tui.backends.local.scheduler import LocalScheduler\n"
    "from torchx_tui.specs import AppDef, Role\n"
    "scheduler = LocalScheduler('s', root=Path(sys.argv[1]), grace_seconds=1)\n"
    "def launch(): return scheduler.submit(AppDef('job', [Role('r', '', entrypoint='sleep', args=['300'])]), {})\n"
    "mine, free = launch(), launch()\n"
    "scheduler.detach(free)\n"
    "try:\n"
    "    print(mine, free, flush=True)\n"
    "    time.sleep(60)\n"
    "except KeyboardInterrupt:\n"
    "    sys.exit(7)\n"
)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 7), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_signal_ends_what_was_launched_here(local: Local, number: int, code: int) -> None:
    found = local.start("sleep 300")
    launcher = subprocess.Popen([sys.executable, "-c", _LAUNCHER, str(local.root)], stdout=subprocess.PIPE, text=True)
    assert launcher.stdout is not None
    mine, free = launcher.stdout.readline().split()
    for app_id in (mine, free, found):
        local.running(app_id)
    os.kill(launcher.pid, number)
    assert launcher.wait(PATIENCE) == code
    launcher.stdout.close()
    if number == signal.SIGKILL:
        assert local.run(mine).state == AppState.RUNNING
    else:
        assert local.ended(mine).state == AppState.CANCELLED
    # Jobs that it found, or let go, are never ended.
    assert [local.run(app_id).state for app_id in (free, found)] == [AppState.RUNNING] * 2


def test_own_apps(local: Local) -> None:
    first, second, third = local.start("sleep 3600"), local.start("sleep 3600"), local.start("exit 0")
    local.ended(third)
    assert local.scheduler.own_app_ids() == [first, second]
    local.scheduler.detach(first)
    local.scheduler.end_own()
    assert local.ended(second).state == AppState.CANCELLED
    assert local.scheduler.own_app_ids() == []
    assert not local.run(first).over


@pytest.mark.parametrize("failure", [SchedulerError("refused"), OSError("no room")], ids=repr)
def test_one_that_cannot_be_ended_holds_up_no_other(
    local: Local, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    first, second = local.start("sleep 3600"), local.start("sleep 3600")
    cancel = local.scheduler.cancel

    def refuse(app_id: str) -> None:
        if app_id == first:
            raise failure
        cancel(app_id)

    with monkeypatch.context() as patched:
        patched.setattr(local.scheduler, "cancel", refuse)
        local.scheduler.end_own()
    assert local.ended(second).state == AppState.CANCELLED
    assert local.scheduler.own_app_ids() == [first]


def test_close_puts_signals_back_and_ends_nothing(tmp_path: Path, local: Local) -> None:
    before = signal.getsignal(signal.SIGTERM)
    scheduler = LocalScheduler("s", root=local.root)
    assert signal.getsignal(signal.SIGTERM) != before
    app_id = local.start("sleep 3600")
    scheduler.close()
    scheduler.close()
    assert signal.getsignal(signal.SIGTERM) == before
    assert not local.run(app_id).over


def test_only_the_main_thread_answers_signals(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    maker = threading.Thread(target=lambda: LocalScheduler("s", root=tmp_path).close())
    maker.start()
    maker.join()
    assert signal.getsignal(signal.SIGTERM) == before
