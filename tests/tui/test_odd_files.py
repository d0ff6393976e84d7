"""A named pipe, a device or gigabytes where a file is expected: every command answers, and the other jobs are there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.waiting import PATIENCE

from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.workspace.walking import folder_patterns
from torchx_tui.base.files import state_folder
from torchx_tui.components.finder import list_components
from torchx_tui.specs.roles import AppDef
from torchx_tui.tui.ui_state import UiState, UiStateFile

pytestmark = pytest.mark.timeout(PATIENCE)


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 50 << 30)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


ODD = pytest.mark.parametrize("make", [os.mkfifo, device, huge], ids=["pipe", "device", "huge"])


@ODD
@pytest.mark.parametrize(
    ("file", "argv", "code", "words"),
    [
        ("config.toml", "--config {path} list -s local_cwd", 2, "{path} cannot be read: it "),
        (".torchxconfig", "list -s local_cwd", 0, "{path} cannot be read: it "),
        ("jobs.py", "lint {path}", 2, "{path}: it "),
        ("jobs.py", "lint {path}:job", 2, "{path}: it "),
        ("jobs.py", "run -s local_cwd {path}:job", 2, "{path}: it "),
    ],
)
def test_command(make, command, tmp_path, file, argv, code, words):
    make(path := tmp_path / file)
    ended = command(*argv.format(path=path).split())
    assert (ended.code, words.format(path=path) in ended.err) == (code, True)
    assert code == 0 or ended.out == ""


@ODD
def test_component_file(make, tmp_path):
    make(tmp_path / "jobs.py")
    (tmp_path / "good.py").write_text("def job() -> AppDef:\n    ...\n")
    names = [found.name for found in list_components([tmp_path]) if found.kind == "file"]
    assert [name.rpartition("/")[2] for name in names] == ["good.py:job"]


@ODD
def test_ignore_file(make, tmp_path):
    make(tmp_path / ".torchxignore")
    with pytest.raises(OSError, match=r"it is a|it has more"):
        folder_patterns(tmp_path, [".torchxignore", ".dockerignore"])


@ODD
def test_screen_file(make, tmp_path):
    make(path := tmp_path / "screen.json")
    assert UiStateFile(path).state == UiState()


@ODD
def test_log_file(make):
    """Own process: handlers of the root logger stay."""
    import subprocess
    import sys

    state_folder().mkdir(parents=True)
    make(state_folder() / "torchx-tui.log")
    argv = [sys.executable, "-m", "torchx_tui.cli", "list", "-s", "local_cwd"]
    ended = subprocess.run(
        argv, capture_output=True, text=True, timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL
    )
    assert (ended.returncode, ended.stderr) == (0, "")


@ODD
def test_journal(make, tmp_path):
    journal = Journal(tmp_path / "journal")
    record = journal.record_intent(AppDef("job", []), "local_cwd", "torchx", {}, expected_app_id="job-1")
    make(tmp_path / "journal" / "20990101-000000-000000-aaaaaaaa.json")
    assert [one.id for one in journal.records()] == [record.id]
    assert journal.find("local_cwd://torchx/job-1") == record
    assert len(journal.warnings) == 1


@ODD
@pytest.mark.parametrize("name", ["state.json", "record", "cancel.json", "delete"])
def test_local_job(make, name, command):
    handles = [command("run", "--wait", "-s", "local_cwd", "utils.echo", "--msg", "hi").out.split()[-1] for _ in "ab"]
    app_id = handles[0].rpartition("/")[2]
    root = state_folder() / "local"
    path = root / "runs" / f"{app_id}.json" if name == "record" else root / "torchx" / app_id / name
    path.unlink(missing_ok=True)
    make(path)
    ended = command("list", "-s", "local_cwd")
    rows = dict(line.split()[::2] for line in ended.out.splitlines()[1:])
    assert rows[handles[1]] == "SUCCEEDED"
    states = {"state.json": "UNKNOWN", "cancel.json": "SUCCEEDED", "record": "SUCCEEDED"}
    assert rows.get(handles[0]) == states.get(name)
    command("cancel", handles[0])
    command("describe", handles[0])
