"""Mistakes on the command line, on stdin and in config: exit code 2, a sentence, and nothing launched."""

from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path

import pytest
from support.command import Ended
from support.shell import launches
from support.tables import toml_table

MISTAKES = toml_table(Path(__file__).with_name("mistakes.toml"))
DRYRUN = ("dryrun", "-s", "local_cwd", "utils.echo")


def assert_refused(ended: Ended, words: str) -> None:
    assert re.search(words, ended.err, re.DOTALL), ended.err
    assert (ended.code, ended.out, "Traceback" in ended.err) == (2, "", False)
    # The history keeps launches that a backend refused, with the reason.
    assert all(json.loads(path.read_bytes())["error"] for path in launches())


@pytest.mark.parametrize("line", MISTAKES["lines"])
def test_mistake_on_the_command_line(command, tmp_path, line):
    for name, text in MISTAKES["files"].items():
        (tmp_path / name).write_text(text)
    assert_refused(command(*shlex.split(line)), MISTAKES["lines"][line])


@pytest.mark.parametrize("text", MISTAKES["stdin"])
def test_mistake_on_stdin(command, monkeypatch, text):
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert_refused(command("run", "--stdin"), MISTAKES["stdin"][text])


@pytest.mark.parametrize("flag", MISTAKES["beside_stdin"])
def test_flag_beside_stdin(command, monkeypatch, flag):
    monkeypatch.setattr("sys.stdin", io.StringIO('{"component_name": "utils.echo"}'))
    words = f"^torchx-tui: --stdin takes everything from the JSON object: leave out {MISTAKES['beside_stdin'][flag]}$"
    assert_refused(command("run", "--stdin", *shlex.split(flag)), words)


@pytest.mark.parametrize("text", MISTAKES["config"])
def test_broken_torchxconfig_stops_a_launch(command, tmp_path, text):
    path = tmp_path / ".torchxconfig"
    path.write_text(text)
    ended = command(*DRYRUN)
    assert_refused(ended, MISTAKES["config"][text].format(file=path))
    assert "correct that, or use --ignore-config to launch without .torchxconfig" in ended.err
    # It does not stop a list of jobs.
    assert command("list", "-s", "local_cwd").code == 0


@pytest.mark.parametrize("argv", [("run",), ("run", "--dryrun")], ids=" ".join)
def test_broken_torchxconfig_stops_run(command, tmp_path, argv):
    (tmp_path / ".torchxconfig").write_text("[local_cwd\n")
    assert_refused(command(*argv, "-s", "local_cwd", "utils.echo"), "must come first")
