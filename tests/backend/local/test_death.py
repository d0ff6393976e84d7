"""What becomes of an app when its launcher, its supervisor, its replicas or all of them are killed."""

import errno
import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from backend.local.support import alive, document, entry, launcher_arguments, started
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.local import launch
from torchx_tui.backends.local.environment import JOB_ID
from torchx_tui.base.files import user_name
from torchx_tui.base.processes import has_job_id, job_processes, read_process
from torchx_tui.specs.handles import make_unique
from torchx_tui.specs.status import AppState

needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


@pytest.fixture
def sleepers():
    """Return a function that starts a process beside the app."""
    made = []

    def start(**env):
        made.append(subprocess.Popen(["sleep", "300"], env={**os.environ, **env}))
        return made[-1]

    yield start
    for process in made:
        process.kill()
        process.wait()


def test_hangup_of_the_launcher(local):
    """The terminal's end takes the launcher, not the app."""
    argv = launcher_arguments(local.root, "sleep 1; echo survived", then="print(launch(), flush=True); time.sleep(60)")
    launcher = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert launcher.stdout is not None
    app_id = launcher.stdout.readline().strip()
    os.killpg(launcher.pid, signal.SIGHUP)
    assert launcher.wait(PATIENCE) == -signal.SIGHUP
    launcher.stdout.close()
    assert not local.run(app_id).over
    local.end_as(app_id, AppState.SUCCEEDED)
    assert local.lines(app_id) == ["survived\n"]


def test_supervisor_is_no_child_of_the_launcher(local):
    pid = local.state(local.start_running())["pid"]
    supervisor: Any = read_process(pid)
    assert supervisor.parent != os.getpid()
    assert os.getsid(pid) != os.getsid(0)


def test_killed_replica(local):
    app_id = local.start_running(replicas=2)
    first, second = (replica["pid"] for replica in local.state(app_id)["replicas"])
    os.kill(second, signal.SIGKILL)
    wait_until(lambda: local.state(app_id)["replicas"][1]["exit_code"], "the exit code of the killed replica")
    # The others are independent processes.
    assert local.run(app_id).state is AppState.RUNNING
    os.kill(first, signal.SIGTERM)
    local.end_as(app_id, AppState.FAILED)
    described = local.describe(app_id)
    assert described.msg == "killed by SIGKILL: r/1"
    assert [status.signal for status in described.roles_statuses[0].replicas] == ["SIGTERM", "SIGKILL"]


def test_killed_supervisor(local):
    app_id = local.start_running("echo before; sleep 1.2; echo after")
    local.kill_supervisor(app_id)
    described = local.describe(app_id)
    assert (described.state, described.notes) == (AppState.RUNNING, ["unsupervised"])
    # What it prints from now on is read from its own files.
    assert local.lines(app_id, should_tail=True) == ["before\n", "after\n"]
    local.end_as(app_id, AppState.UNKNOWN)
    described = local.describe(app_id)
    assert described.msg == "its supervisor was killed: how its replicas ended is not known"
    assert described.finished_at is not None
    # The state is written, so that later readers say the same; a request to cancel does not change it.
    assert local.state(app_id)["state"] == "UNKNOWN"
    local.scheduler.cancel(app_id)
    assert local.run(app_id).state is AppState.UNKNOWN


def test_cancel_without_a_supervisor(local, make_local):
    app_id = local.start_running("setsid sh -c 'trap \"\" TERM; while :; do sleep 0.1; done' & sleep 300", replicas=2)
    local.kill_supervisor(app_id)
    make_local(local.root, grace_seconds=0.5).scheduler.cancel(app_id)
    run = local.end_as(app_id, AppState.CANCELLED)
    assert not job_processes(run.job_id, set())
    assert json.loads((run.folder / "SUCCESS").read_text()) == local.success(run, ("r", 0, None), ("r", 1, None))


def test_cancel_without_a_supervisor_on_a_full_disk(local, monkeypatch):
    app_id = local.start_running()
    local.kill_supervisor(app_id)

    def refuse(folder, _):
        raise OSError(errno.ENOSPC, "No space left on device", str(folder / "cancel.json"))

    monkeypatch.setattr(launch, "write_cancel", refuse)
    assert local.cancel(app_id).document["cancel"]["by"] == user_name()


def test_cancel_does_not_signal_a_reused_pid(local, sleepers):
    job, bystander = sleepers(), sleepers()
    replicas = entry(pid=job.pid, pid_started=started(job.pid)), entry(1, pid=bystander.pid, pid_started="1")
    job_id = f"local_cwd://s/{make_unique('nobody')}"
    local.put("job-1", document(*replicas, state="RUNNING", finished_at=None, job_id=job_id))
    local.cancel("job-1")
    assert job.wait(PATIENCE) == -signal.SIGTERM
    assert bystander.poll() is None


def test_killed_supervisor_of_a_waiting_app(make_local):
    local = make_local(max_running=1)
    local.start_running()
    second = local.start("sleep 300")
    local.pending(second)
    local.kill_supervisor(second)
    assert local.end_as(second, AppState.FAILED).reason == "its supervisor was killed before it started the replicas"


# A worker as torchrun makes them: a session of its own, and deaf to SIGTERM; it makes another one of its kind.
_DEAF = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        os.environ.clear()
        os.execve(sys.executable, [sys.executable, '-c', sys.argv[1], sys.argv[2]], {})
time.sleep(300)
"""
_ORPHAN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)"


@needs_proc
def test_cancel_ends_every_descendant(make_local, tmp_path):
    local = make_local(grace_seconds=0.5)
    marker = f"marker-{tmp_path.name}-{os.getpid()}"
    program = tmp_path / "deaf.py"
    program.write_text(_DEAF)
    app_id = local.start(f'exec "{sys.executable}" {program} "{_ORPHAN}" {marker}')
    # The replica, its child, and the orphan of another session that has lost the job's id.
    wait_until(lambda: len(alive(marker)) >= 3, "all descendants")
    run = local.cancel(app_id)
    assert (alive(marker), job_processes(run.job_id, set())) == ([], [])


@needs_proc
def test_left_processes_end_with_the_app(local, tmp_path):
    marker = f"left-{tmp_path.name}"
    run = local.finish(f"setsid sh -c 'while :; do sleep 0.1; done' {marker} & exit 3")
    assert (run.state, alive(marker)) == (AppState.FAILED, [])
    assert any("left behind" in note for note in run.notes)


def test_cancel_ends_a_stopped_replica(local):
    app_id = local.start_running()
    os.kill(local.state(app_id)["replicas"][0]["pid"], signal.SIGSTOP)
    local.cancel(app_id)


def test_cancel_gives_time_to_finish(local):
    app_id = local.start("trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
    wait_until(lambda: local.lines(app_id) == ["ready\n"], "the trap")
    # It is cancelled, whatever it exits with.
    local.cancel(app_id)
    assert local.lines(app_id, streams="stdout") == ["ready\n", "saved\n"]
    described = local.describe(app_id)
    assert described.msg.startswith(f"cancelled by {user_name()} after ")
    assert described.roles_statuses[0].replicas[0].exit_code == 0


def test_request_file_cancels(local):
    """A machine that cannot signal this one writes the file."""
    app_id = local.start_running()
    (local.run(app_id).folder / "cancel.json").write_text('{"format": 1, "by": "alice", "host": "far", "at": 1e10}')
    local.end_as(app_id, AppState.CANCELLED)
    assert local.describe(app_id).msg.startswith("cancelled by alice after ")


def test_job_of_the_launcher_is_not_the_apps(local, monkeypatch):
    monkeypatch.setenv(JOB_ID, "local_cwd://outer/outer-app")
    app_id = local.start_running()
    state = local.state(app_id)
    assert not has_job_id(state["pid"], "local_cwd://outer/outer-app")
    assert has_job_id(state["replicas"][0]["pid"], f"local_cwd://session/{app_id}")


@needs_proc
def test_processes_with_a_shared_job_id_do_not_end(local, sleepers):
    """A role may set TORCHX_JOB_ID to anything."""
    bystander = sleepers(**{JOB_ID: "local_cwd://s/shared"})
    local.cancel(local.start_running("sleep 300", env={JOB_ID: "local_cwd://s/shared"}))
    assert bystander.poll() is None
