"""Which script a command runs, and whether it will be there."""

import shlex
from pathlib import Path

import pytest
from backend.tables import TABLES

from torchx_tui.backends.workspace.scripts import script_findings, script_of, workspace_findings
from torchx_tui.components import build_app
from torchx_tui.specs import Role, Workspace


@pytest.mark.parametrize(("command", "script"), TABLES["scripts"]["script_of"])
def test_the_script_of_a_command(command, script):
    expected = script.replace("HOME", str(Path.home())) or None
    assert script_of(shlex.split(command)) == expected


@pytest.mark.parametrize("j", ["1x2", "2x2"])
def test_the_builtins_commands_are_understood(j):
    (role,) = build_app("dist.torchrun", {"script": "train.py", "j": j}).roles
    assert script_of([role.entrypoint, *role.args]) == "train.py"
    (role,) = build_app("utils.python", {"script": "train.py"}).roles
    assert script_of([role.entrypoint, *role.args]) == "train.py"
    (role,) = build_app("demo.train", {}).roles
    assert script_of([role.entrypoint, *role.args]) is None


def test_a_script_that_is_not_there(tmp_path):
    (tmp_path / "train.py").touch()
    assert script_findings("r", ["python", "train.py"], str(tmp_path)) == []
    assert script_findings("r", ["python", str(tmp_path / "train.py")], "/") == []
    (finding,) = script_findings("r", ["python", "trian.py"], str(tmp_path))
    assert (finding.level, finding.what) == ("error", f"r: there is no file trian.py in {tmp_path}")
    assert finding.hint
    (finding,) = script_findings("r", ["python", "/gone/trian.py"], str(tmp_path))
    assert finding.what == "r: there is no file /gone/trian.py"
    (finding,) = script_findings("r", ["python", "x" * 300], str(tmp_path))
    assert finding.what == f"r: {tmp_path}/{'x' * 300}: File name too long"


def test_a_script_that_does_not_travel(tmp_path):
    (tmp_path / "train.py").touch()
    (tmp_path / "old.py").touch()

    def found(script, **projects):
        workspace = Workspace({str(tmp_path / path.strip("_")): remote for path, remote in projects.items()})
        role = Role("r", "image", entrypoint="python", args=[script], workspace=workspace)
        assert all(finding.level == "warning" and finding.hint for finding in workspace_findings(role))
        return [finding.what for finding in workspace_findings(role)]

    assert found("train.py", _="") == []
    assert found("/opt/train.py", _="") == []
    assert found("code/train.py", _="code") == []
    assert found("eval.py", _="") == [f"r: eval.py is not in the workspace {tmp_path}"]
    assert found("train.py", _="code") == [f"r: train.py is not in the workspace {tmp_path}:code"]
    (tmp_path / ".dockerignore").write_text("old*\n")
    assert found("old.py", _="") == ["r: old.py stays at home"]
    # Its own Dockerfile says what becomes of the files.
    (tmp_path / "Dockerfile.torchx").touch()
    assert found("eval.py", _="") == []
    assert workspace_findings(Role("r", "image", entrypoint="python", args=["eval.py"])) == []
