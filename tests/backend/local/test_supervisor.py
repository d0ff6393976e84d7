"""The supervisor by its parts: what it answers to whoever starts it, which files it watches, whom it tells."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from backend.local.support import Local
from support.waiting import wait_until

from torchx_tui.backends.local import supervisor

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
