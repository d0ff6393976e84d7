"""The supervisor by its parts: answers, watched files, sleep, helpers, and failures."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from backend.local.support import app
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.local import launch, supervisor
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.status import AppState


def ask(request):
    """Start a supervisor with a request; return its answer."""
    data = b"" if request is None else json.dumps(request).encode()
    return subprocess.run(
        [sys.executable, "-I", "-S", supervisor.__file__], input=data, capture_output=True, check=True
    )


@pytest.mark.parametrize("adopt", [True, False])
def test_write_error_is_its_answer(tmp_path, adopt):
    folder, turn = tmp_path / "none", tmp_path / "turns/1-job"
    state = {"timeline": []}
    asked = ask({"adopt": adopt, "folder": str(folder), "turn": str(turn), "state": state})
    # Where it is to wait for its turn, that is written first.
    file = folder / "state.json" if adopt else turn
    answer = json.loads(asked.stdout)
    assert list(answer) == ["error"]
    assert answer["error"].startswith(f"No such file or directory: {file}")
    assert (asked.stdout.count(b"\n"), asked.stderr) == (1, b"")


def test_without_a_request_there_is_no_answer():
    asked = ask(None)
    assert (asked.stdout, asked.stderr) == (b"", b"")


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (b'{"by": "alice", "at": 1.5}', {"by": "alice", "at": 1.5}),
        (b"{}", {}),
        (b"", {}),
        (b"{", {}),
        (b"[1]", {}),
        (b"\xff", {}),
        (b"[" * 200_000, {}),
        (b'{"by": "' + b"x" * (1 << 18) + b'"}', {}),
        (None, {}),
    ],
    ids=lambda text: repr(text)[:20],
)
def test_invalid_note_is_empty(tmp_path, text, note):
    path = tmp_path / "cancel.json"
    if text is not None:
        path.write_bytes(text)
    assert supervisor.read_note(str(path)) == note


def test_helpers_run_at_the_start_and_at_the_end(make_local, tmp_path):
    def helpers(handle):
        script = 'cat > "$1".part && mv "$1".part "$1"'
        return {
            moment: {"argv": ["sh", "-c", script, "sh", str(tmp_path / moment)], "stdin": f"{moment} of {handle} é"}
            for moment in ("start", "end")
        }

    local = make_local(helpers=helpers)
    app_id = local.start("sleep 300")
    handle = f"local_cwd://session/{app_id}"
    wait_until((tmp_path / "start").exists, "the helper of the start")
    assert (tmp_path / "start").read_text() == f"start of {handle} é"
    assert not (tmp_path / "end").exists()
    local.cancel(app_id)
    wait_until((tmp_path / "end").exists, "the helper of the end")
    assert (tmp_path / "end").read_text() == f"end of {handle} é"


@pytest.mark.parametrize(
    ("program", "stdin"), [("/no/such/program", ""), ("touch", "x" * 1_000_000)], ids=["missing", "long_stdin"]
)
def test_helper_that_cannot_start_is_left_out(make_local, tmp_path, program, stdin):
    helper = {"argv": [program, str(tmp_path / "there")], "stdin": stdin}
    assert make_local(helpers=lambda _: {"start": helper}).finish("exit 0").state is AppState.SUCCEEDED
    assert not (tmp_path / "there").exists()


@pytest.fixture
def launch_with(local, monkeypatch, tmp_path):
    """Return a function that launches with a shell script as Python; it returns the error and the app's folder."""

    def start(script, command="exit 0"):
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        info = local.scheduler.submit_dryrun(app(command), {})
        with monkeypatch.context() as patched:
            patched.setattr(sys, "executable", str(python))
            with pytest.raises(SchedulerError) as refused:
                local.scheduler.schedule(info)
        return str(refused.value), Path(info.request.log_dir)

    return start


def test_silent_supervisor_starts_nothing(launch_with, monkeypatch):
    monkeypatch.setattr(launch, "ANSWER_SECONDS", 0.1)
    error, folder = launch_with("cat > /dev/null\nsleep 1")
    assert "was not launched: the supervisor did not answer within 0 s" in error
    # Should it live after all, it ends before it starts anything.
    assert json.loads((folder / "cancel.json").read_text())["by"] == ""


@pytest.mark.parametrize("command", ["exit 0", "#" * 100_000], ids=["small_request", "more_than_a_pipe_takes"])
def test_interpreter_that_hangs_at_its_start_is_killed(launch_with, monkeypatch, tmp_path, command):
    monkeypatch.setattr(launch, "ANSWER_SECONDS", 1.0)
    began = time.monotonic()
    error, _ = launch_with(f"echo $$ > {tmp_path}/pid\nexec sleep {3 * PATIENCE}", command)
    assert "was not launched: the supervisor did not answer within 1 s" in error
    assert time.monotonic() - began < PATIENCE
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("exit 3", "it printed nothing. Try again"),
        ("kill -9 $$", "it was killed, for example because the memory is full. Try again"),
        ("echo no; echo such library", "such library"),
        (r"printf '\377 is no text\n'", "\ufffd is no text"),
    ],
)
def test_broken_supervisor_is_reported(local, launch_with, script, text):
    error, folder = launch_with(script)
    assert f"was not launched: the supervisor did not start: {text}" in error
    assert (local.scheduler.list(), folder.exists()) == ([], False)


def test_failure_of_a_supervisor_is_in_its_log(make_local):
    local = make_local(max_running=1)
    local.start_running()
    waiting = local.start("exit 0")
    local.pending(waiting)
    (local.root / "turns").rename(local.root / "elsewhere")
    run = local.ended(waiting)
    assert (run.state, run.reason) == (AppState.FAILED, "its supervisor was killed before it started the replicas")
    assert "FileNotFoundError" in (run.folder / "supervisor.log").read_text()
    (local.root / "elsewhere").rename(local.root / "turns")


def test_idle_supervisor_uses_little_cpu(local):
    app_id = local.start_running()
    process = psutil.Process(local.state(app_id)["pid"])
    state = local.run(app_id).folder / "state.json"

    def used():
        times = process.cpu_times()
        return times.user + times.system

    before, began, written = used(), time.monotonic(), set()
    # A heartbeat comes every 5 s.
    while (passed := time.monotonic() - began) < 6:
        written.add(state.stat().st_mtime_ns)
        time.sleep(0.1)
    assert used() - before < 0.6
    assert len(written) <= 3 + passed / 5


def test_planted_link_is_not_written_through(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr(time, "monotonic_ns", lambda: 7)
    state = tmp_path / "state.json"
    (tmp_path / f"state.json.{os.getpid()}.7.new").symlink_to(victim)
    with pytest.raises(OSError):
        supervisor.replace_file(str(state), b"{}")
    assert (victim.read_text(), state.exists()) == ("mine", False)
