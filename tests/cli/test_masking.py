"""Secrets of a launch: nowhere on the screen, in what is copied, in words and in the log file; the job gets them."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from support.command import Command

from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.history.launch_record import LaunchRecord
from torchx_tui.backends.shared.secrets import MASK
from torchx_tui.cli.main import MaskingFormatter
from torchx_tui.tui.launch.commands import launch_command
from torchx_tui.tui.watch.make_rows import arguments_text

SECRETS = ("hush1", "hush2", "hush3", "hush4", "hush5")
SCRIPT = "echo --token hush1; env | grep DB"
GIVEN = (
    *("utils.sh", "--env", "HF_TOKEN=hush2,DB=postgres://u:hush3@host", "--"),
    *("sh", "-c", SCRIPT, "--password", "hush4", "--api-token=hush5"),
)


def assert_masked(text: str) -> None:
    assert MASK in text
    assert [secret for secret in SECRETS if secret in text] == []


@pytest.fixture
def handle(command: Command) -> str:
    return command("run", "-s", "local_cwd", "--wait", *GIVEN).out.strip()


def record_of(handle: str) -> LaunchRecord:
    record = Journal().find(handle)
    assert record is not None
    return record


def test_dry_run(command: Command):
    ended = command("run", "-s", "local_cwd", "--dryrun", *GIVEN)
    assert ended.code == 0
    assert_masked(ended.out)


def test_describe(command: Command, handle: str):
    assert_masked(command("describe", handle).out)
    data = command("describe", "--json", handle).data
    assert all(secret in json.dumps(data) for secret in SECRETS)


def test_the_job_itself_gets_them(command: Command, handle: str):
    assert "--token hush1" in command("log", handle).out
    assert "postgres://u:hush3@host" in command("log", handle).out


def test_copied_command_and_row(handle: str, command: Command):
    record = record_of(handle)
    assert_masked(" ".join(launch_command(record)))
    assert_masked(arguments_text(record))


def test_words(command: Command):
    ended = command("run", "-s", "local_cwd", "--dryrun", "utils.sh", "--nope", "--token=hush1", "x")
    assert (ended.code, "hush1" in ended.err) == (2, False)


def test_log_file(tmp_path: Path):
    made = MaskingFormatter("%(message)s")
    record = logging.LogRecord("n", logging.INFO, "p", 1, "it ran %s", ("--token hush1 a://u:hush2@h",), None)
    assert_masked(made.format(record))
