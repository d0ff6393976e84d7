"""What people get wrong: every mistake is answered in words, nothing is launched, and what was typed is kept."""

import os
import re
import subprocess

import pytest
from actions import fill, open_form
from support.shell import shell

# A file that cannot be run


# A program that is not there


# Ports


# Folders that cannot be written


@pytest.fixture
def mounted(tmp_path, require):
    """Return a function that mounts something on a folder of its own, or skips."""
    made = []

    def mount(*arguments: str) -> str:
        folder = tmp_path / f"mount{len(made)}"
        folder.mkdir()
        command = ["mount", *[str(folder) if argument == "HERE" else argument for argument in arguments], str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False) if os.geteuid() == 0 else None
        words = done.stderr.strip() if done else "only root may"
        require("mount", done is not None and done.returncode == 0, f"this machine lets no test mount: {words}")
        made.append(folder)
        return str(folder)

    yield mount
    for folder in made:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


@pytest.fixture
def read_only_folder(mounted):
    folder = mounted("--bind", "HERE")
    subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
    return folder


def test_a_state_folder_that_cannot_be_written(terminal, read_only_folder):
    environ = {"XDG_STATE_HOME": read_only_folder}
    told = shell("run", "utils.echo", "--msg", "hello", environ=environ)
    assert told.returncode == 2
    assert "Read-only file system" in told.stderr
    assert "nothing was launched" in told.stderr
    app = terminal(environ=environ, size=(156, 40), wait="cannot be written")
    open_form(app, "utils.echo")
    fill(app, {"msg": "kept"})
    app.wait("ready")
    app.press("ctrl+s", wait="Not launched.*nothing was launched")
    assert re.search(r"msg\s+kept\b", app.text())
