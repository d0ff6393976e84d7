"""Commands whose stdout or stderr is closed or full."""

from __future__ import annotations

import os
import subprocess

import pytest
from support.shell import jobs
from support.terminal import COMMAND
from support.waiting import PATIENCE

COMMANDS = ["list -s local_cwd", "list -s local_cwd --json", "builtins", "dryrun -s local_cwd utils.echo", "--help"]


def ran(command: str, redirection: str) -> subprocess.CompletedProcess[str]:
    """Run a command with a redirection of the shell."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        ["sh", "-c", f'exec "$0" {command} {redirection}', COMMAND],
        env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_closed_or_full_stdout_is_an_error(command):
    for redirection, reason in ((">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")):
        ended = ran(command, redirection)
        assert (ended.returncode, ended.stderr) == (2, f"torchx-tui: the output cannot be written: {reason}\n")


def test_closed_stderr_and_stdin_change_nothing():
    ended = ran("status local_cwd://torchx/none-there", "2>&- <&-")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ran("list -s local_cwd", "2>&- <&-").stdout.startswith("APP HANDLE")


def test_run_names_the_job_if_stdout_is_full():
    ended = ran("run -s local_cwd --detach utils.echo", ">/dev/full")
    (handle,) = jobs()
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"torchx-tui: launched {handle}")


@pytest.mark.parametrize(
    "regex", ["(" * 5000 + ")" * 5000, "a{99999999999}", "(" * 5000], ids=["nested", "repeated", "open"]
)
def test_extreme_regex_is_refused_in_words(command, regex):
    ended = command("log", "local_cwd://torchx/none-there", "--regex", regex)
    assert ended.code == 2
    assert ended.err.startswith("torchx-tui: ")
    assert "not a regular expression" in ended.err
    assert "Error" not in ended.err
