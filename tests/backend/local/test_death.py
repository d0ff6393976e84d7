"""What becomes of an app when its launcher, its supervisor, its replicas or all of them are killed."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from backend.local.support import Local, alive
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.local import launch
from torchx_tui.backends.local.environment import JOB_ID
from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.specs import AppState
from torchx_tui.specs.files import user_name
from torchx_tui.specs.processes import has_job_id, is_running, job_processes, read_process

needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


def test_the_launcher_is_hung_up(local: Local, tmp_path: Path) -> None:
    """The terminal's end takes the launcher, not the app."""
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from torchx_tui.backends.local.scheduler import LocalScheduler\n"
        "from torchx_tui.specs import AppDef, Role\n"
        "role = Role('r', '', entrypoint='sh', args=['-c', 'sleep 1; echo survived'])\n"
        "print(LocalScheduler('s', root=Path(sys.argv[1])).submit(AppDef('job', [role]), {}), flush=True)\n"
        "time.sleep(60)\n"
    )
    launcher = subprocess.Popen(
        [sys.executable, "-c", program, str(local.root)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert launcher.stdout is not None
    app_id = launcher.stdout.readline().strip()
    os.killpg(launcher.pid, signal.SIGHUP)
    assert launcher.wait(PATIENCE) == -signal.SIGHUP
    launcher.stdout.close()
    assert not local.run(app_id).over
    assert local.ended(app_id).state == AppState.SUCCEEDED
    assert local.lines(app_id) == ["survived\n"]


def test_the_launcher_leaves_no_child_behind(local: Local) -> None:
    app_id = local.start("sleep 3600")
    state = local.running(app_id)
    found = read_process(state["pid"])
    assert found is not None
    assert found.parent != os.getpid()
    assert os.getsid(state["pid"]) != os.getsid(0)


def test_a_replica_is_killed(local: Local) -> None:
    app_id = local.start("exec sleep 3600", replicas=2)
    state = local.running(app_id)
    os.kill(state["replicas"][1]["pid"], signal.SIGKILL)
    wait_until(lambda: local.state(app_id)["replicas"][1]["exit_code"], "the news of the killed replica")
    # The others are independent processes, and go on.
    assert local.run(app_id).state == AppState.RUNNING
    os.kill(state["replicas"][0]["pid"], signal.SIGTERM)
    assert local.ended(app_id).state == AppState.FAILED
    described = local.scheduler.describe(app_id)
    assert described is not None
    assert described.msg == "killed by SIGKILL: r/1"
    assert [status.signal for status in described.roles_statuses[0].replicas] == ["SIGTERM", "SIGKILL"]


def test_the_supervisor_is_killed(local: Local) -> None:
    app_id = local.start("echo before; sleep 1.2; echo after")
    state = local.running(app_id)
    os.kill(state["pid"], signal.SIGKILL)
    wait_until(lambda: not is_running(state["pid"], state["pid_started"]), "its death")
    described = local.scheduler.describe(app_id)
    assert described is not None
    assert described.state == AppState.RUNNING
    assert described.notes == ["unsupervised"]
    # What it prints from now on is read from its own files.
    assert local.lines(app_id, should_tail=True) == ["before\n", "after\n"]
    run = local.ended(app_id)
    assert run.state == AppState.UNKNOWN
    described = local.scheduler.describe(app_id)
    assert described is not None
    assert described.msg == "its supervisor was killed: how its replicas ended is not known"
    assert described.finished_at is not None
    # The verdict is on disk, so that later readers say the same.
    assert local.state(app_id)["state"] == "UNKNOWN"


def test_an_unsupervised_app_is_cancelled(local: Local) -> None:
    app_id = local.start("setsid sh -c 'trap \"\" TERM; while :; do sleep 0.1; done' & sleep 300", replicas=2)
    state = local.running(app_id)
    os.kill(state["pid"], signal.SIGKILL)
    other = LocalScheduler("other", root=local.root, grace_seconds=0.5, handle_signals=False)
    wait_until(lambda: local.run(app_id).notes == ["unsupervised"], "the note")
    other.cancel(app_id)
    run = local.ended(app_id)
    assert run.state == AppState.CANCELLED
    assert not job_processes(run.job_id, set())
    success = json.loads((run.folder / "SUCCESS").read_text())
    assert list(success) == ["app_id", "log_dir", "final_state", "roles", "last_updated"]
    assert (success["app_id"], success["log_dir"], success["final_state"]) == (app_id, str(run.folder), "CANCELLED")
    assert success["roles"] == {
        "r": [
            {
                "replica_id": number,
                "pid": state["replicas"][number]["pid"],
                "exitcode": None,
                **{name: str(run.folder / "r" / f"{number}" / f"{name}.log") for name in ("stdout", "stderr")},
                "error_file": str(run.folder / "r" / f"{number}" / "error.json"),
            }
            for number in range(2)
        ]
    }


def test_an_unsupervised_app_is_cancelled_on_a_full_disk(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    app_id = local.start("sleep 300")
    os.kill(local.running(app_id)["pid"], signal.SIGKILL)
    wait_until(lambda: local.run(app_id).notes == ["unsupervised"], "the note")

    def refuse(folder: Path, _: str) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device", str(folder / "cancel.json"))

    monkeypatch.setattr(launch, "write_cancel", refuse)
    local.scheduler.cancel(app_id)
    run = local.ended(app_id)
    assert (run.state, run.document["cancel"]["by"]) == (AppState.CANCELLED, user_name())


def test_the_supervisor_and_its_replicas_are_killed(local: Local) -> None:
    app_id = local.start("exec sleep 300", replicas=2)
    state = local.running(app_id)
    for pid in (state["pid"], *(entry["pid"] for entry in state["replicas"])):
        os.kill(pid, signal.SIGKILL)
    run = local.ended(app_id)
    assert run.state == AppState.UNKNOWN
    assert "supervisor was killed" in run.reason
    assert local.scheduler.list()[0].finished_at is not None
    local.scheduler.cancel(app_id)
    assert local.run(app_id).state == AppState.UNKNOWN


def test_the_supervisor_is_killed_while_the_app_waits(make_local) -> None:
    local = make_local(max_running=1)
    first = local.start("sleep 3600")
    local.running(first)
    second = local.start("sleep 3600")
    wait_until(lambda: local.run(second).state == AppState.PENDING, "PENDING")
    os.kill(local.state(second)["pid"], signal.SIGKILL)
    run = local.ended(second)
    assert run.state == AppState.FAILED
    assert run.reason == "its supervisor was killed before it started the replicas"


# A worker as torchrun makes them: a session of its own, and deaf to SIGTERM; it makes another one of its kind.
_DEAF = (
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        os.setsid()\n"
    "        os.environ.clear()\n"
    "        os.execve(sys.executable, [sys.executable, '-c', sys.argv[1], sys.argv[2]], {})\n"
    "time.sleep(300)\n"
)
_ORPHAN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)"


@needs_proc
def test_cancel_ends_every_descendant(local: Local, tmp_path: Path) -> None:
    marker = f"marker-{tmp_path.name}-{os.getpid()}"
    local.scheduler._grace_seconds = 0.5
    program = tmp_path / "deaf.py"
    program.write_text(_DEAF)
    app_id = local.start(f'exec "{sys.executable}" {program} "{_ORPHAN}" {marker}')
    # The replica, its child, and the orphan of another session that has lost the job's id.
    wait_until(lambda: len(alive(marker)) >= 3, "all descendants")
    local.scheduler.cancel(app_id)
    run = local.ended(app_id)
    assert run.state == AppState.CANCELLED
    assert alive(marker) == []
    assert not job_processes(run.job_id, set())


@needs_proc
def test_what_replicas_leave_behind_ends_with_the_app(local: Local, tmp_path: Path) -> None:
    marker = f"left-{tmp_path.name}"
    script = f"setsid sh -c 'while :; do sleep 0.1; done' {marker} & exit 3"
    app_id = local.start(script)
    run = local.ended(app_id)
    assert run.state == AppState.FAILED
    assert alive(marker) == []
    assert any("left behind" in note for note in run.notes)


def test_a_stopped_replica_can_be_cancelled(local: Local) -> None:
    app_id = local.start("exec sleep 300")
    os.kill(local.running(app_id)["replicas"][0]["pid"], signal.SIGSTOP)
    local.scheduler.cancel(app_id)
    assert local.ended(app_id).state == AppState.CANCELLED


def test_cancel_gives_the_time_to_finish(local: Local) -> None:
    app_id = local.start("trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
    wait_until(lambda: local.lines(app_id) == ["ready\n"], "the trap")
    local.scheduler.cancel(app_id)
    run = local.ended(app_id)
    # It is cancelled, whatever it exits with.
    assert run.state == AppState.CANCELLED
    assert local.lines(app_id, streams="stdout") == ["ready\n", "saved\n"]
    described = local.scheduler.describe(app_id)
    assert described is not None
    assert described.msg.startswith("cancelled by ")
    assert " after 0s" in described.msg or " after 1s" in described.msg
    assert described.roles_statuses[0].replicas[0].exit_code == 0


def test_another_process_cancels(local: Local) -> None:
    app_id = local.start("sleep 300")
    local.running(app_id)
    program = (
        "import sys; from pathlib import Path; from torchx_tui.backends.local.scheduler import create_scheduler\n"
        "scheduler = create_scheduler('elsewhere', root=Path(sys.argv[1]))\n"
        "assert [row.app_id for row in scheduler.list()] == [sys.argv[2]]\n"
        "scheduler.cancel(sys.argv[2])\n"
    )
    subprocess.run([sys.executable, "-c", program, str(local.root), app_id], check=True, timeout=PATIENCE)
    assert local.ended(app_id).state == AppState.CANCELLED


def test_sigterm_to_the_supervisor_cancels(local: Local) -> None:
    app_id = local.start("sleep 300")
    os.kill(local.running(app_id)["pid"], signal.SIGTERM)
    assert local.ended(app_id).state == AppState.CANCELLED


def test_a_request_file_cancels(local: Local) -> None:
    """What a machine does that cannot signal this one."""
    app_id = local.start("sleep 300")
    local.running(app_id)
    (local.run(app_id).folder / "cancel.json").write_text('{"format": 1, "by": "alice", "host": "far", "at": 1e10}')
    run = local.ended(app_id)
    assert run.state == AppState.CANCELLED
    described = local.scheduler.describe(app_id)
    assert described is not None
    assert described.msg.startswith("cancelled by alice after ")


def test_the_launchers_job_is_not_the_apps(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launcher that is part of a job does not make its apps part of it."""
    monkeypatch.setenv(JOB_ID, "local_cwd://outer/outer-app")
    app_id = local.start("sleep 300")
    state = local.running(app_id)
    assert not has_job_id(state["pid"], "local_cwd://outer/outer-app")
    assert has_job_id(state["replicas"][0]["pid"], f"local_cwd://session/{app_id}")


@needs_proc
def test_an_id_of_others_does_not_end_them(local: Local) -> None:
    """A role may set TORCHX_JOB_ID to anything; what else carries that is not ours to end."""
    bystander = subprocess.Popen(["sleep", "3600"], env={**os.environ, JOB_ID: "local_cwd://s/shared"})
    try:
        app_id = local.start("sleep 300", env={JOB_ID: "local_cwd://s/shared"})
        local.running(app_id)
        local.scheduler.cancel(app_id)
        assert local.ended(app_id).state == AppState.CANCELLED
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
