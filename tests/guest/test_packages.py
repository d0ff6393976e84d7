"""Components of packages that are installed in the environment of the project, and not beside this program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.completion import completed
from support.component_files import HEADER, make_environment
from support.terminal import COMMAND, Terminal
from support.waiting import PATIENCE

from torchx_tui.components.build import build_app
from torchx_tui.components.finder import describe, each_listed, find, list_components
from torchx_tui.specs.errors import ComponentNotFoundException

COMPONENT = '''
import theirs

def train(steps: int = 3) -> AppDef:
    """Train a model.

    Args:
        steps: How many.
    """
    return AppDef("train", [Role("r", "busybox", entrypoint=theirs.NAME, args=[str(steps)])])
'''


class Project:
    """A project with an environment of its own.

    Args:
        root: its folder.
    """

    def __init__(self, root: Path) -> None:
        self.environment = make_environment(root / ".venv")
        (self.packages,) = self.environment.glob("lib/python*/site-packages")
        self.imported = root / "imported"

    def install(self, name: str, entry_points: str, folder: Path | None = None, text: str = COMPONENT) -> Path:
        """Install a package; its modules say when they are imported."""
        package = (folder or self.packages) / name
        package.mkdir(parents=True)
        note = f"open({str(self.imported)!r}, 'a').write({name!r})\n"
        (package / "__init__.py").write_text(note)
        (package / "jobs.py").write_text(f"{HEADER}{note}{text}")
        (self.packages / "theirs.py").write_text("NAME = 'only there'\n")
        info = self.packages / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[torchx.components]\n{entry_points}\n")
        return package


@pytest.fixture
def project(tmp_path, monkeypatch):
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "jobs").mkdir()
    monkeypatch.chdir(tmp_path / "jobs")
    return Project(tmp_path)


def listed() -> dict[str, str | None]:
    return {item.name: item.error for item in list_components() if item.kind == "plugin"}


def test_components_of_entry_points_are_listed_and_run_there(project):
    project.install("acme", "site = acme")
    assert listed() == {"site.jobs.train": None}
    doc = describe("site.jobs.train")
    assert (doc.summary, [parameter.name for parameter in doc.parameters]) == ("Train a model.", ["steps"])
    assert not project.imported.exists(), "to list a component imports nothing"
    (role,) = build_app("site.jobs.train", {"steps": "7"}).roles
    assert (role.entrypoint, role.args) == ("only there", ["7"])
    component = find("site.jobs.train")
    assert component.interpreter is not None
    assert component.interpreter.source == str(project.environment)


def test_modules_of_that_environment_are_found_by_name(project):
    project.install("acme", "")
    assert build_app("acme.jobs:train", {}).roles[0].entrypoint == "only there"
    assert build_app("acme.jobs.train", {}).roles[0].args == ["3"]
    for name in ("acme.nothing:train", "acme.nothing.train"):
        with pytest.raises(ComponentNotFoundException):
            find(name)


def test_an_editable_install_is_found_without_its_finder(project, tmp_path):
    """As setuptools writes it; the finder is only read."""
    source = project.install("acme", "site = acme.jobs", folder=tmp_path / "source")
    module = "__editable___acme_1_0_finder"
    (project.packages / f"{module}.py").write_text(
        "import importlib.util, sys\n"
        f"MAPPING: dict[str, str] = {{'acme': {str(source)!r}}}\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in MAPPING:\n"
        "            return importlib.util.spec_from_file_location(name, MAPPING[name] + '/__init__.py',"
        " submodule_search_locations=[MAPPING[name]])\n"
        "def install():\n"
        "    sys.meta_path.append(Finder())\n"
    )
    (project.packages / "__editable__.acme-1.0.pth").write_text(f"import {module}; {module}.install()\n")
    assert listed() == {"site.train": None}
    assert not project.imported.exists()
    assert build_app("site.train", {}).roles[0].entrypoint == "only there"


def test_an_editable_install_is_found_by_its_path(project, tmp_path):
    project.install("acme", "site = acme.jobs", folder=tmp_path / "source")
    (project.packages / "acme.pth").write_text(f"# comment\n\n{tmp_path / 'source'}\n/gone\nimport os\n")
    assert listed() == {"site.train": None}


def test_a_package_that_comes_or_changes_meanwhile_is_listed(project):
    assert listed() == {}
    package = project.install("acme", "site = acme")
    assert listed() == {"site.jobs.train": None}
    (package / "more.py").write_text(f"{HEADER}{COMPONENT}")
    assert listed() == {"site.jobs.train": None, "site.more.train": None}


def test_what_is_broken_there_is_listed_with_its_reason(project):
    project.install("acme", "site = acme\ngone = no_such_module")
    project.install("bad", "bad = bad", text="def f(:\n")
    names = listed()
    assert names["site.jobs.train"] is None
    assert "no_such_module is missing" in str(names["gone"])
    assert "syntax error" in str(names["bad.jobs"])


def test_what_cannot_be_read_there_costs_one_row(project):
    project.install("acme", "site = acme")
    for name, make in {
        "fifo": os.mkfifo,
        "folder": os.mkdir,
        "bad": lambda path: path.write_text("[torchx.components]\nb"),
    }.items():
        (project.packages / f"{name}-1.dist-info").mkdir()
        make(project.packages / f"{name}-1.dist-info" / "entry_points.txt")
        make(project.packages / f"{name}.pth")
        make(project.packages / f"__editable___{name}_finder.py")
    names = listed()
    assert names.pop("site.jobs.train") is None
    ((name, reason),) = names.items()
    assert (name, "its entry points cannot be read" in str(reason)) == ("bad", True)


@pytest.mark.parametrize("way", ["builtins", "doctor", "list", "completion", "picker", "dashboard", "a name"])
def test_nothing_of_the_project_is_run_to_list_it(project, tmp_path, way):
    project.install("acme", "site = acme")
    program = project.environment / "bin" / "python"
    program.unlink()
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    program.chmod(0o755)
    (project.packages / "evil.pth").write_text(f"import os; open({str(tmp_path / 'ran')!r}, 'w')\n")
    for folder in (project.packages, Path.cwd()):
        for name in ("sitecustomize", "usercustomize", "acme", "yaml", "jobs"):
            with (folder / f"{name}.py").open("a") as file:
                file.write(f"{HEADER}open({str(tmp_path / 'ran')!r}, 'w')\n")
    found = {
        "builtins": lambda: run_command("builtins"),
        "doctor": lambda: run_command("doctor"),
        "list": lambda: run_command("list") + "site.jobs.train",
        "dashboard": lambda: shown_by_dashboard("site.jobs.train"),
        "completion": lambda: completed("torchx-tui run site.", Path.cwd()),
        "picker": lambda: [item.name for part in each_listed([Path.cwd()]) for item in part],
        "a name": lambda: [find("acme.jobs:train").name, find("site.jobs.train").name],
    }[way]()
    assert "site.jobs.train" in found or "1 component of acme.jobs" in found
    assert not (tmp_path / "ran").exists()


def shown_by_dashboard(component: str) -> str:
    """Return what the dashboard shows where this component is looked for."""
    with Terminal() as terminal:
        terminal.wait("No jobs yet")
        terminal.press("n", *component)
        return terminal.wait("Train a model.")


def run_command(name: str) -> str:
    """Return what the installed command prints."""
    ended = subprocess.run([COMMAND, name], capture_output=True, text=True, timeout=PATIENCE, check=False)
    return ended.stdout
