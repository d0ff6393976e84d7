"""The supervisor by its parts: what it answers to whoever starts it, which files it watches, whom it tells."""

from __future__ import annotations

import ctypes
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from backend.local.support import Local, app
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.local import launch, supervisor
from torchx_tui.specs import AppState, SchedulerError

needs_inotify = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has inotify")


def ask(request: dict[str, Any] | None) -> subprocess.CompletedProcess[bytes]:
    """Start a supervisor and hand it a request; return what it answers."""
    data = b"" if request is None else json.dumps(request).encode()
    return subprocess.run(
        [sys.executable, "-I", "-S", supervisor.__file__], input=data, capture_output=True, check=True
    )


@pytest.mark.parametrize("adopt", [True, False])
def test_what_it_cannot_write_is_its_answer(tmp_path: Path, adopt: bool) -> None:
    folder, turn = tmp_path / "none", tmp_path / "turns" / "1-job"
    state: dict[str, Any] = {"timeline": []}
    asked = ask({"adopt": adopt, "folder": str(folder), "turn": str(turn), "state": state})
    # Where it is to wait for its turn, that is written first.
    file = folder / "state.json" if adopt else turn
    answer = json.loads(asked.stdout)
    assert list(answer) == ["error"]
    assert answer["error"].startswith(f"No such file or directory: {file}")
    assert (asked.stdout.count(b"\n"), asked.stderr) == (1, b"")


def test_without_a_request_it_says_nothing() -> None:
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
def test_a_note_that_is_none_is_empty(tmp_path: Path, text: bytes | None, note: dict[str, Any]) -> None:
    path = tmp_path / "cancel.json"
    if text is not None:
        path.write_bytes(text)
    assert supervisor.read_note(str(path)) == note


@needs_inotify
def test_the_files_that_were_written_to_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    # This process is not to become the parent of other orphans.
    known = SimpleNamespace(
        prctl=lambda *_: 0, inotify_init1=library.inotify_init1, inotify_add_watch=library.inotify_add_watch
    )
    monkeypatch.setattr(supervisor, "ctypes", SimpleNamespace(CDLL=lambda *_, **__: known))
    files = [tmp_path / f"{number}.log" for number in range(4)]
    watch = supervisor.Watch()
    for number, file in enumerate(files):
        file.touch()
        watch.add(str(file), number)
    assert watch.written() == set()
    for number in (3, 0, 2):
        files[number].write_text("a line\n")
    assert watch.written() == {0, 2, 3}
    assert watch.written() == set()
    # Where no more files can be watched, all may have been written to.
    watch.add(str(tmp_path / "none"), 4)
    assert (watch.written(), watch.file) == (None, -1)


@pytest.fixture
def sleeper() -> Iterator[tuple[Any, int, int]]:
    """Return a supervisor of nothing, what wakes it, and what tells it of a written file."""
    (woken, wake), (watched, write) = os.pipe(), os.pipe()
    made: Any = supervisor.Supervisor.__new__(supervisor.Supervisor)
    made.queued = made.changed = made.ending_since = False
    made.woken, made.watch = woken, SimpleNamespace(file=watched)
    made.logs, made.copy_at = {0: None}, {}
    yield made, wake, write
    for file in (woken, wake, watched, write):
        os.close(file)


def test_a_signal_wakes_it_once(sleeper: tuple[Any, int, int]) -> None:
    made, wake, _ = sleeper
    os.write(wake, b"signals")
    made.sleep(time.monotonic())
    assert select.select([made.woken], [], [], 0)[0] == []


@pytest.mark.parametrize(("due_in", "slept"), [(0.5, [0.01]), (0.0, [])])
def test_what_is_written_is_copied_in_blocks_and_a_flood_at_once(
    sleeper: tuple[Any, int, int], monkeypatch: pytest.MonkeyPatch, due_in: float, slept: list[float]
) -> None:
    made, _, write = sleeper
    pauses: list[float] = []
    now = time.monotonic()
    made.copy_at[0] = now + due_in
    os.write(write, b"written")
    with monkeypatch.context() as patched:
        patched.setattr(time, "sleep", pauses.append)
        made.sleep(now)
    assert pauses == slept


def test_a_helper_keeps_no_file_open(sleeper: tuple[Any, int, int]) -> None:
    made, _, _ = sleeper
    made.request, made.processes = {"helpers": {"end": {"argv": ["cat"], "stdin": "a job has ended"}}}, []
    before = os.listdir("/proc/self/fd")
    made.start_helper("end")
    assert made.processes[0].wait(PATIENCE) == 0
    assert os.listdir("/proc/self/fd") == before


def test_helpers_are_told_of_the_start_and_of_the_end(make_local: Callable[..., Local], tmp_path: Path) -> None:
    def helpers(handle: str) -> dict[str, dict[str, Any]]:
        script = 'cat > "$1".part && mv "$1".part "$1"'
        return {
            moment: {"argv": ["sh", "-c", script, "sh", str(tmp_path / moment)], "stdin": f"{moment} of {handle} é"}
            for moment in ("start", "end")
        }

    local = make_local(helpers=helpers)
    app_id = local.start("sleep 300")
    handle = f"local_cwd://session/{app_id}"
    # It reads to the end, which it does not have to wait for.
    wait_until((tmp_path / "start").exists, "the helper of the start")
    assert (tmp_path / "start").read_text() == f"start of {handle} é"
    assert not (tmp_path / "end").exists()
    local.scheduler.cancel(app_id)
    local.ended(app_id)
    wait_until((tmp_path / "end").exists, "the helper of the end")
    assert (tmp_path / "end").read_text() == f"end of {handle} é"


@pytest.mark.parametrize(
    "helper", [{"argv": ["/no/such/program"], "stdin": ""}, {"argv": ["touch", "there"], "stdin": "x" * 1_000_000}]
)
def test_a_helper_that_cannot_be_told_is_left_out(
    make_local: Callable[..., Local], tmp_path: Path, helper: dict[str, Any]
) -> None:
    argv = [str(tmp_path / "there") if word == "there" else word for word in helper["argv"]]
    local = make_local(helpers=lambda _: {"start": {**helper, "argv": argv}})
    run = local.ended(local.start("exit 0"))
    assert run.state.name == "SUCCEEDED"
    assert not (tmp_path / "there").exists()


def test_a_supervisor_that_does_not_answer_starts_nothing(
    local: Local, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\ncat > /dev/null\nsleep 1\n")
    silent.chmod(0o755)
    info = local.scheduler.submit_dryrun(app("exit 0"), {})
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", str(silent))
        patched.setattr(launch, "_ANSWER_SECONDS", 0.1)
        with pytest.raises(SchedulerError, match="was not launched: the supervisor did not answer within 0 s"):
            local.scheduler.schedule(info)
    # Should it live after all, it ends before it starts anything.
    assert json.loads((Path(info.request.log_dir) / "cancel.json").read_text())["by"] == ""


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 3", "it said nothing"),
        ("echo no; echo such library", "such library"),
        (r"printf '\377 is no text\n'", "\ufffd is no text"),
    ],
)
def test_a_supervisor_that_dies_says_why(
    local: Local, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, words: str
) -> None:
    broken = tmp_path / "broken"
    broken.write_text(f"#!/bin/sh\n{script}\n")
    broken.chmod(0o755)
    info = local.scheduler.submit_dryrun(app("exit 0"), {})
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", str(broken))
        with pytest.raises(SchedulerError, match=f"was not launched: the supervisor did not start: {words}"):
            local.scheduler.schedule(info)
    assert local.scheduler.list() == []
    assert not Path(info.request.log_dir).exists()


def test_a_supervisor_that_fails_says_why_in_the_folder(make_local: Callable[..., Local]) -> None:
    local = make_local(max_running=1)
    first = local.start("sleep 300")
    local.running(first)
    waiting = local.start("exit 0")
    wait_until(lambda: local.run(waiting).state == AppState.PENDING, "PENDING")
    (local.root / "turns").rename(local.root / "elsewhere")
    run = local.ended(waiting)
    assert (run.state, run.reason) == (AppState.FAILED, "its supervisor was killed before it started the replicas")
    assert "FileNotFoundError" in (run.folder / "supervisor.log").read_text()
    (local.root / "elsewhere").rename(local.root / "turns")


def test_a_supervisor_that_waits_works_next_to_nothing(local: Local) -> None:
    app_id = local.start("sleep 300")
    process = psutil.Process(local.running(app_id)["pid"])
    state = local.run(app_id).folder / "state.json"

    def used() -> float:
        times = process.cpu_times()
        return times.user + times.system

    before, began, written = used(), time.monotonic(), set()
    while (passed := time.monotonic() - began) < 6:
        written.add(state.stat().st_mtime_ns)
        time.sleep(0.1)
    assert used() - before < 0.6
    # A heartbeat comes every 5 s.
    assert len(written) <= 3 + passed / 5
