"""A component's source as a file of its own: what it prints can be launched, and makes the same AppDef."""

import ast
import sys
from pathlib import Path

import pytest
from support.component_files import ComponentFile
from support.tables import toml_table

from torchx_tui.components.build import build_app
from torchx_tui.components.command_line import parse_command_line
from torchx_tui.components.finder import builtins
from torchx_tui.components.lint import validate
from torchx_tui.components.standalone import get_builtin_source

DATA = toml_table(Path(__file__).with_name("standalone.toml"))
LINES, OWN = DATA["lines"], DATA["texts"]["own"]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_every_builtin_has_a_line():
    assert set(LINES) == {component.name for component in builtins()}


@pytest.mark.parametrize("name", LINES)
def test_copy_makes_the_same_app(name, tmp_path, monkeypatch):
    path = tmp_path / "copy.py"
    path.write_text(get_builtin_source(name))
    function = name.partition(".")[2]
    copied = f"{path}:{function}"
    assert validate(str(path), function) == []
    made = build_app(name, parse_command_line(name, LINES[name]))
    # What it gives up to TorchX where that is installed is ours where it is not.
    monkeypatch.setitem(sys.modules, "torchx.specs", None)
    assert build_app(copied, parse_command_line(copied, LINES[name])) == made
    monkeypatch.undo()
    assert build_app(copied, parse_command_line(copied, LINES[name])) == made


@pytest.mark.parametrize("name", LINES)
def test_copy_has_nothing_unused(name):
    tree = ast.parse(get_builtin_source(name))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert all((one.asname or one.name) in used for node in imports for one in node.names)
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert set(functions) - {name.partition(".")[2]} <= used


def test_copy_of_a_component_in_a_file(tmp_path):
    component = ComponentFile(tmp_path / "jobs.py").write(OWN).name("job")
    text = get_builtin_source(component)
    assert text.startswith("from __future__ import annotations\nfrom json import *\nimport os.path\n")
    assert "# What is run.\ndef program() -> str:" in text
    assert "other" not in text
    assert "UNUSED" not in text
    copy = tmp_path / "copy.py"
    copy.write_text(text)
    assert build_app(f"{copy}:job", {"size": "2"}) == build_app(component, {"size": "2"})


def test_copy_of_a_component_in_a_package(tmp_path, monkeypatch):
    package = tmp_path / "copied_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "names.py").write_text('NAME = "job"\n')
    ComponentFile(package / "jobs.py").write(
        'from .names import NAME\nfrom . import names\ndef job() -> AppDef:\n    """Do it."""\n'
        '    return AppDef(NAME, [Role(names.NAME, "", entrypoint="true")])\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    text = get_builtin_source("copied_package.jobs:job")
    assert "from copied_package import names\nfrom copied_package.names import NAME\n" in text
    copy = tmp_path / "copy.py"
    copy.write_text(text)
    assert build_app(f"{copy}:job", {}).roles[0].name == "job"
    # By its file it is in no package: what it imports stays as it is written.
    text = get_builtin_source(f"{package / 'jobs.py'}:job")
    assert "from . import names\nfrom .names import NAME\n" in text


def test_copy_imports_torchx_if_installed():
    head, _, body = get_builtin_source("dist.ddp").partition("\n\n\n")
    assert head == DATA["texts"]["head"]
    # What others use comes first, with the words above it.
    assert body.startswith("# TorchX's, so that a component")
    places = [body.index(text) for text in ("DEFAULT_IMAGE =", "def checked_resource(", "def ddp(")]
    assert places == sorted(places)
