"""Secrets of a launch are masked in the command that is copied, in the row of the job and in the log file."""

from __future__ import annotations

from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.shared.secrets import MASK
from torchx_tui.tui.launch.commands import launch_command
from torchx_tui.tui.watch.make_rows import arguments_text

GIVEN = ("--env", "HF_TOKEN=hush,DB=postgres://u:hush@host", "--", "echo", "--token hush", "--password", "hush")


def assert_masked(text: str) -> None:
    assert (MASK in text, "hush" in text) == (True, False), text


def test_copied_command_and_row(command, scheduler):
    record = Journal().find(command("run", "-s", "local_cwd", "utils.sh", *GIVEN).out.strip())
    assert record is not None
    assert_masked(" ".join(launch_command(record)))
    assert_masked(arguments_text(record))
