"""The installed commands beside each other: `torchx tui`, and a launch by either."""

import json
import subprocess
import sys
from pathlib import Path

from support.shell import shell
from support.terminal import Terminal


def test_torchx_tui_opens_the_dashboard(torchx, tmp_path):
    torchx_command = str(Path(sys.executable).with_name("torchx"))
    told = subprocess.run([torchx_command, "tui", "--help"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert told.returncode == 0
    assert told.stdout.startswith("usage: torchx tui ")
    assert "--read-only" in told.stdout
    with Terminal([torchx_command, "tui", "--ascii"], cwd=tmp_path) as app:
        app.wait("No jobs yet")
        app.press("q")
        assert app.wait_for_end() == 0


def test_torchx_tui_without_a_terminal_says_what_to_use(torchx, tmp_path):
    told = subprocess.run(
        [str(Path(sys.executable).with_name("torchx")), "tui"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (told.returncode, "the dashboard needs a terminal" in told.stderr) == (2, True)


def test_run_prints_the_same_json(cli, tmp_path):
    argv = ["run", "-s", "local_cwd", "--json", "utils.echo", "--msg", "hi"]
    theirs, ours = json.loads(cli(*argv)), json.loads(shell(*argv, cwd=tmp_path).stdout)
    assert list(ours) == list(theirs)
    assert (ours["scheduler"], ours["state"]) == (theirs["scheduler"], theirs["state"])
