"""Which script a command runs, and whether it will be there."""

import shlex
from pathlib import Path

import pytest
from backend.projects import fill
from backend.tables import TABLES

from torchx_tui.backends.workspace.scripts import script_findings, script_of, workspace_findings
from torchx_tui.components.build import build_app
from torchx_tui.specs.roles import Role
from torchx_tui.specs.workspace import Workspace


@pytest.mark.parametrize(("command", "script"), TABLES["scripts"]["script_of"])
def test_the_script_of_a_command(command, script):
    expected = script.replace("HOME", str(Path.home())) or None
    assert script_of(shlex.split(command)) == expected


@pytest.mark.parametrize(
    ("component", "arguments", "script"),
    [
        ("dist.torchrun", {"script": "train.py", "j": "1x2"}, "train.py"),
        ("dist.torchrun", {"script": "train.py", "j": "2x2"}, "train.py"),
        ("utils.python", {"script": "train.py"}, "train.py"),
        ("demo.train", {}, None),
    ],
)
def test_commands_of_the_builtins(component, arguments, script):
    (role,) = build_app(component, arguments).roles
    assert script_of([role.entrypoint, *role.args]) == script


LONG = "x" * 300


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("train.py", ""),
        ("TMP/train.py", ""),
        ("trian.py", "r: there is no file trian.py in TMP"),
        ("/gone/trian.py", "r: there is no file /gone/trian.py"),
        (LONG, f"r: TMP/{LONG}: File name too long"),
    ],
)
def test_a_missing_script_is_an_error(tmp_path, script, words):
    fill(tmp_path, "train.py")
    found = script_findings("r", ["python", script.replace("TMP", str(tmp_path))], str(tmp_path))
    expected = [("error", words.replace("TMP", str(tmp_path)))] if words else []
    assert [(finding.level, finding.what) for finding in found] == expected
    assert script != "trian.py" or found[0].hint


@pytest.mark.parametrize(("script", "remote", "words"), TABLES["scripts"]["workspace"])
def test_a_script_outside_the_workspace_is_a_warning(tmp_path, script, remote, words):
    fill(tmp_path, "train.py", "old.py", **({".dockerignore": "old*\n"} if script == "old.py" else {}))
    role = Role("r", "image", entrypoint="python", args=[script], workspace=Workspace({str(tmp_path): remote}))
    found = [(finding.level, finding.what, bool(finding.hint)) for finding in workspace_findings(role)]
    assert found == ([("warning", words.replace("TMP", str(tmp_path)), True)] if words else [])
    # With a Dockerfile of its own, or without a workspace, nothing is known.
    fill(tmp_path, "Dockerfile.torchx")
    assert workspace_findings(role) == []
    role.workspace = None
    assert workspace_findings(role) == []
