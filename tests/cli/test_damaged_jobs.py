"""Commands on local jobs whose files are damaged or are not what they should be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchx_tui.base.files import state_folder


@pytest.fixture
def ended(command):
    """The handle of a job that has ended."""
    return command("run", "-s", "local_cwd", "--wait", "utils.echo", "--msg", "step 1 loss 2").out.splitlines()[0]


def folder_of(handle: str) -> Path:
    return state_folder() / "local" / "torchx" / handle.rpartition("/")[2]


@pytest.mark.parametrize("name", ["log", "cancel", "stacks", "metrics"])
def test_damaged_state_file_is_an_error(command, ended, name):
    path = folder_of(ended) / "state.json"
    path.write_text("{")
    found = command(name, ended)
    assert found.code == 2
    assert f"its state file is damaged: {path}: " in found.err
    assert "deleting the job removes" in found.err
    assert "ValueError" not in found.err


@pytest.mark.parametrize("name", ["log", "metrics"])
@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (os.mkfifo, "it is a named pipe, not a regular file"),
        (Path.mkdir, "Is a directory"),
        (lambda path: path.symlink_to("/dev/zero"), "it is a device, not a regular file"),
    ],
    ids=["pipe", "folder", "device"],
)
def test_log_that_is_no_file_is_an_error(command, ended, name, make, fault):
    path = folder_of(ended) / "echo" / "0" / "combined.log"
    path.unlink()
    make(path)
    found = command(name, ended)
    assert (found.code, found.out) == (2, "")
    assert f"the log cannot be read: {path}: {fault}" in found.err
