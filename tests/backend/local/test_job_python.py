"""Which Python runs a local job: the project's, not this program's."""

import os
import sys

import pytest
from support.component_files import make_environment
from support.tables import tables

from torchx_tui.guest.settings import use_guest_settings
from torchx_tui.specs.errors import AppDefError
from torchx_tui.specs.roles import AppDef, Role

table = tables(__file__)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository in the current folder, and a PATH with a python3 only."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    fake_python(tmp_path / "usr/python3")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", str(tmp_path / "usr"))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    return folder


def fake_python(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def dryrun(local, *command, **fields):
    role = Role("r", "", entrypoint=command[0], args=list(command[1:]), **fields)  # type: ignore[arg-type]
    return local.scheduler.submit_dryrun(AppDef("job", [role]), {})


@table("commands", "command program is_on_path")
def test_bare_python_is_that_of_the_project(local, project, command, program, is_on_path):
    python = fake_python(project / ".venv/bin/python")
    info = dryrun(local, *command)
    (param,) = info.request.role_params["r"]
    assert param.args == [program.replace("<venv>", str(python)), *command[1:]]
    assert (str(python.parent) in param.env["PATH"].split(os.pathsep)) == is_on_path
    assert info.interpreter == (f"{python} ({project / '.venv'})" if is_on_path else "")


def test_environment_is_searched_for_beside_the_script(local, project):
    python = fake_python(project / "jobs/.venv/bin/python")
    assert dryrun(local, "python", "jobs/train.py").request.role_params["r"][0].args[0] == str(python)
    assert dryrun(local, "python", "train.py").interpreter.endswith("(PATH)")


def test_active_environment_and_config_come_first(local, project, tmp_path, monkeypatch):
    fake_python(project / ".venv/bin/python")
    active = fake_python(tmp_path / "active/bin/python")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    assert dryrun(local, "python", "train.py").interpreter == f"{active} (VIRTUAL_ENV)"
    with use_guest_settings(python="/opt/python"):
        assert dryrun(local, "python", "train.py").interpreter.startswith("/opt/python ([components] python")


def test_python_of_path_runs_without_an_environment(local, project, tmp_path):
    python3 = tmp_path / "usr/python3"
    # The folder of this program's own Python, which has a `python`, is last on PATH.
    assert dryrun(local, "python", "train.py").request.role_params["r"][0].args[0] == str(python3)
    info = dryrun(local, "python3", "train.py")
    assert (info.request.role_params["r"][0].args[0], info.interpreter) == ("python3", f"{python3} (PATH)")
    fake_python(tmp_path / "usr/python")
    assert dryrun(local, "python", "train.py").request.role_params["r"][0].args[0] == "python"
    assert sys.executable not in info.interpreter


def test_path_of_the_role_is_its_own_choice(local, project):
    fake_python(project / ".venv/bin/python")
    info = dryrun(local, "python", "train.py", env={"PATH": "/opt/bin"})
    assert (info.request.role_params["r"][0].args[0], info.interpreter) == ("python", "")


def test_environment_that_others_can_change_is_refused(local, project):
    fake_python(project / ".venv/bin/python").chmod(0o777)
    with pytest.raises(AppDefError, match=r"role r: .*/\.venv/bin/python is not run, because"):
        dryrun(local, "python", "train.py")


def test_missing_module_names_the_python_that_ran(local, project, tmp_path, monkeypatch):
    environment = make_environment(tmp_path / "active")
    monkeypatch.setenv("VIRTUAL_ENV", str(environment))
    other = fake_python(project / ".venv/bin/python")
    role = Role("r", "", entrypoint="python", args=["-c", "import nothing_of_this_name"])
    local.finish(AppDef("job", [role]))
    (row,) = local.scheduler.list()
    reason = f"; it ran with {environment}/bin/python (VIRTUAL_ENV), not with {other} ({project / '.venv'})"
    assert row.msg.startswith("ModuleNotFoundError: No module named 'nothing_of_this_name': r/0, exit 1; it ran with")
    assert reason in row.msg
    role = Role("r", "", entrypoint="python", args=["-c", "1 / 0"])
    assert "it ran with" not in local.describe(local.finish(AppDef("job", [role])).app_id).msg
