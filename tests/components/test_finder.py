"""Components found and described without being run."""

from __future__ import annotations

import gc
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.tables import toml_table

from torchx_tui.components.finder import (
    component_key,
    describe,
    each_listed,
    find,
    list_components,
    listed_by_key,
    read_component,
)
from torchx_tui.components.image import DEFAULT_IMAGE
from torchx_tui.components.model import REQUIRED, Computed
from torchx_tui.components.source import read_source
from torchx_tui.components.values import to_text
from torchx_tui.specs.errors import ComponentLoadError, ComponentNotFoundException, ComponentValidationException

ROWS = toml_table(Path(__file__).with_name("finder.toml"))

BUILTINS = {
    *("utils.echo", "utils.touch", "utils.sh", "utils.python", "utils.binary", "utils.copy", "utils.booth"),
    *("dist.torchrun", "dist.ddp", "dist.spmd", "demo.train"),
}


def test_builtins():
    listed = {summary.name: summary for summary in list_components()}
    assert {name for name, summary in listed.items() if summary.kind == "builtin"} == BUILTINS
    assert all(listed[name].error is None and listed[name].summary.endswith(".") for name in BUILTINS)


@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_builtin_describes_its_parameters(name):
    doc = describe(name)
    assert doc.summary
    assert [parameter.name for parameter in doc.parameters if not parameter.help] == []
    assert [parameter.name for parameter in doc.parameters if isinstance(parameter.default, Computed)] == []


COMPONENTS = '''
import enum
from typing import Literal, Optional
NODES: int = 4
raise SystemExit("never run me")

class Size(enum.Enum):
    SMALL = 1
    LARGE = 2

def train(lr: float, name: str = "x", nodes: int = NODES, image: str = compute(),
          mode: Literal["fast", "slow"] = "fast", size: Size = None, host: Optional[str] = None,
          odd: str = {[]: 1}, *rest: str) -> AppDef:
    """Train a model. It is a good one.

    More about it.

    Args:
        lr: the learning rate,
            above 0
        name: what it is called
    """

def _hidden() -> AppDef: ...
def helper(x: int) -> int: ...
def broken(x) -> AppDef: ...

class Trainer:
    """Train by class.

    Args:
        lr: rate
    """
    def __init__(self, lr: float = 0.1): ...
    def build(self) -> AppDef: ...
'''


def test_file_is_described_without_running_it(component_file):
    name = component_file.write(COMPONENTS).name("train")
    doc = describe(name)
    assert (doc.kind, doc.summary) == ("file", "Train a model.")
    assert doc.description == "It is a good one.\n\nMore about it."
    assert doc.line == component_file.line_of("def train")
    assert [(one.name, one.default, one.choices, one.optional, one.help) for one in doc.parameters] == [
        ("lr", REQUIRED, (), False, "the learning rate, above 0"),
        ("name", "x", (), False, "what it is called"),
        ("nodes", 4, (), False, ""),
        ("image", Computed("compute()"), (), False, ""),
        ("mode", "fast", ("fast", "slow"), False, ""),
        ("size", None, ("SMALL", "LARGE"), False, ""),
        ("host", None, (), True, ""),
        ("odd", Computed("{[]: 1}"), (), False, ""),
        ("rest", (), (), False, ""),
    ]


def test_class_is_described_by_its_constructor(component_file):
    doc = describe(component_file.write(COMPONENTS).name("Trainer"))
    assert [(parameter.name, parameter.default, parameter.help) for parameter in doc.parameters] == [
        ("lr", 0.1, "rate")
    ]


def test_dataclass_is_described_by_its_fields(component_file):
    text = """
from dataclasses import dataclass, field
import dataclasses
LR = 0.5
@dataclass
class Trainer:
    name: str
    lr: float = LR
    tags: list[str] = field(default_factory=list)
    steps: int = dataclasses.field(default=3)
    quiet: bool = field(repr=False)
    image: str = compute()
    sizes: dict[str, int] = field(default_factory=made)
    pair: tuple[int, ...] = field(default_factory=tuple)
    constant = 1
    kept: typing.ClassVar[int] = 2
    made: int = field(default=1, init=False)
    given: int = field(default=1, init=True)
    odd: set[int] = 1
    def build(self) -> AppDef: ...
"""
    doc = describe(component_file.write(text).name("Trainer"))
    assert [(parameter.name, parameter.type.kind, parameter.default) for parameter in doc.parameters] == [
        ("name", "str", REQUIRED),
        ("lr", "float", 0.5),
        ("tags", "list", []),
        ("steps", "int", 3),
        ("quiet", "bool", REQUIRED),
        ("image", "str", Computed("compute()")),
        ("sizes", "dict", Computed("made()")),
        ("pair", "tuple", ()),
        ("given", "int", 1),
        ("odd", "other", 1),
    ]


def test_folder_is_listed_with_its_faults(component_file, tmp_path):
    component_file.write(COMPONENTS)
    bad = tmp_path / "bad.py"
    bad.write_text("from torchx_tui.specs import AppDef\ndef f(:\n")
    (tmp_path / "other.py").write_text("raise SystemExit\n")
    listed = {one.name: (one.line, one.error) for one in list_components([tmp_path]) if one.kind == "file"}
    assert listed.pop(str(bad)) == (2, "syntax error: invalid syntax")
    errors = {name.rpartition(":")[2]: str(error).partition(" for ")[0] for name, (_, error) in listed.items()}
    assert errors == {"train": "None", "Trainer": "None", "broken": "Missing type annotation"}


def test_names_in_the_working_folder(component_file, tmp_path, monkeypatch):
    component_file.write(COMPONENTS)
    monkeypatch.chdir(tmp_path)
    assert "jobs.py:train" in {summary.name for summary in list_components([tmp_path])}
    assert find("jobs.py:train").path == component_file.path


def test_faulty_component_is_refused_with_its_line(component_file):
    component_file.write(COMPONENTS)
    with pytest.raises(ComponentValidationException) as caught:
        describe(component_file.name("broken"))
    assert f"{component_file.path}:{component_file.line_of('def broken')}: Missing type" in str(caught.value)


def test_file_that_is_not_python(component_file):
    component_file.write("def f(:\n", header="")
    with pytest.raises(ComponentLoadError) as caught:
        find(component_file.name("f"))
    assert (caught.value.line, caught.value.path) == (1, str(component_file.path))


@pytest.mark.parametrize(("name", "words"), ROWS["unknown_names"])
def test_unknown_names(name, words):
    with pytest.raises(ComponentNotFoundException) as caught:
        find(name)
    assert words in str(caught.value)


def test_unknown_function_of_a_file(component_file):
    component_file.write(COMPONENTS)
    for name, words in (
        ("trian", r"Did you mean train or Trainer\?"),
        ("x", "Components there: train, broken, Trainer"),
    ):
        with pytest.raises(ComponentNotFoundException, match=words):
            find(component_file.name(name))


@pytest.mark.parametrize("name", [f"{'x' * 300}.py:f", f"/{'x' * 300}/a.py:f", f"{'x' * 300}:f", "x" * 300])
def test_name_that_is_too_long(name):
    with pytest.raises((ComponentLoadError, ComponentNotFoundException)):
        find(name)


def test_faulty_component_is_described(component_file):
    component_file.write('def f(msg, n: int) -> AppDef:\n    """Say it."""\n')
    doc = read_component(component_file.name("f"))
    assert (doc.summary, [parameter.name for parameter in doc.parameters]) == ("Say it.", ["msg", "n"])
    assert [(one.line, one.description) for one in doc.findings] == [
        (3, "Missing type annotation for argument 'msg' in function 'f'")
    ]


def test_builtins_come_before_files(tmp_path):
    folder = tmp_path / "jobs"
    folder.mkdir()
    for number in range(30):
        (folder / f"j{number:02}.py").write_text('def f() -> "AppDef": ...\n')
    parts = each_listed([folder])
    assert {one.name for one in next(parts)} == BUILTINS
    # What is there when its turn comes is listed, so nothing was read ahead.
    for path in folder.iterdir():
        path.unlink()
    (folder / "late.py").write_text('def f() -> "AppDef": ...\n')
    assert [one.name for part in parts for one in part if one.kind == "file"] == [str(folder / "late.py:f")]


def test_unreadable_files_are_listed_with_the_reason(tmp_path):
    ok, gone = tmp_path / "ok.py", tmp_path / "gone"
    ok.write_text('def f() -> "AppDef":\n    """Do."""\n')
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "loop.py").symlink_to("loop.py")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "not_ours.py").write_text("def f(:\n")
    (tmp_path / "generated.py").write_text("# AppDef\ndef f(:\n" + "#" * (1 << 20))
    (tmp_path / "bytes.py").write_bytes(b"AppDef = '\xff'\n")
    listed = {one.name: one for one in list_components([gone, tmp_path, ok]) if one.kind == "file"}
    reasons = {
        str(gone): "No such file or directory.*component_folders",
        str(ok): "Not a directory",
        f"{ok}:f": "None",
        str(tmp_path / "bytes.py"): "syntax error",
    }
    assert listed.keys() == reasons.keys()
    assert [name for name, reason in reasons.items() if not re.search(reason, str(listed[name].error))] == []
    assert listed[str(gone)].line == 0


def test_folder_is_listed_once(tmp_path, monkeypatch):
    (tmp_path / "jobs.py").write_text('def f() -> "AppDef": ...\n')
    monkeypatch.chdir(tmp_path)
    names = [one.name for one in list_components([Path(), tmp_path, Path("../" + tmp_path.name)])]
    assert names.count("jobs.py:f") == 1
    assert len([name for name in names if name.endswith(":f")]) == 1


@pytest.mark.parametrize(
    ("name", "folder", "key"),
    ROWS["component_key"],
)
def test_component_key(name, folder, key):
    assert component_key(name, folder) == key.format(home=Path.home())


def test_component_key_in_a_deleted_folder(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert component_key("jobs.py:f") == "jobs.py:f"


def test_listed_by_key(component_file, monkeypatch):
    component_file.write(COMPONENTS)
    monkeypatch.chdir(component_file.path.parent)
    shown = listed_by_key(f"{component_file.path}:train")
    assert (shown.name, shown.error, shown.summary) == ("jobs.py:train", None, "Train a model.")
    with pytest.raises(ComponentNotFoundException, match="there is no file"):
        listed_by_key("/nowhere/jobs.py:f")
    with pytest.raises(ComponentNotFoundException, match=r"Did you mean utils\.echo"):
        listed_by_key("utils.ecko")
    component_file.path.write_text("def f(:\n")
    broken = listed_by_key(f"{component_file.path}:train")
    assert (broken.kind, broken.line, broken.error) == ("file", 1, "syntax error: invalid syntax")


def package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = folder / "a_job_package" / "inner"
    inner.mkdir(parents=True)
    (folder / "a_job_package" / "__init__.py").write_text("raise SystemExit('imported')\ndef top() -> 'AppDef': ...\n")
    (inner / "__init__.py").write_text("")
    text = 'def deep(x: str) -> "AppDef":\n    """Go deep."""\ndef echo() -> "AppDef": ...\n'
    (inner / "jobs.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "a_job_package", raising=False)


@pytest.mark.parametrize("name", ["a_job_package.inner.jobs:deep", "a_job_package.inner.jobs.deep"])
def test_modules_are_not_imported(name, tmp_path, monkeypatch):
    package(tmp_path, monkeypatch)
    doc = describe(name)
    assert (doc.kind, doc.summary) == ("module", "Go deep.")
    assert "a_job_package" not in sys.modules


def test_entry_points_do_not_replace_builtins(tmp_path, monkeypatch):
    package(tmp_path, monkeypatch)
    (tmp_path / "a_job_package" / "utils.py").write_text('def echo() -> "AppDef": ...\n')
    with (tmp_path / "a_job_package" / "inner" / "jobs.py").open("a") as file:
        file.write('\n\ndef _hidden() -> "AppDef": ...\n')
    info = tmp_path / "job_plugin-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: job-plugin\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[torchx.components]\nteam = a_job_package.inner\n_ = a_job_package\n")
    listed = {summary.name: summary for summary in list_components()}
    assert listed["team.jobs.deep"].kind == "plugin"
    assert listed["inner.jobs.deep"].kind == "plugin"
    assert listed["top"].kind == "plugin"
    assert listed["utils.echo"].kind == "builtin"
    assert set(listed) > BUILTINS
    assert find("team.jobs.deep").function == "deep"
    # TorchX finds these too; a list of helpers is of no use.
    assert find("team.jobs._hidden").function == "_hidden"
    assert "team.jobs._hidden" not in listed
    assert "a_job_package" not in sys.modules


def test_broken_entry_points_are_listed(tmp_path, monkeypatch):
    package(tmp_path, monkeypatch)
    (tmp_path / "a_job_package" / "inner" / "broken.py").write_text("def f(:\n")
    for name, text in (
        ("good", "[torchx.components]\nteam = a_job_package.inner\ngone = no_such_package.jobs\nodd = not a module\n"),
        ("damaged", "[torchx.components]\nthis line says nothing\n"),
        ("bytes", "\udcff"),
    ):
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(text, errors="surrogateescape")
    listed = {summary.name: summary for summary in list_components() if summary.kind == "plugin"}
    assert listed["team.jobs.deep"].error is None
    assert "no_such_package.jobs is missing" in str(listed["gone"].error)
    assert "not a module" in str(listed["odd"].error)
    assert "broken.py:1: syntax error" in str(listed["team.broken"].error)
    assert "entry points cannot be read" in str(listed["damaged"].error)
    assert find("team.jobs.deep").function == "deep"


def test_threads_parse_at_once(tmp_path):
    """CPython before 3.11.9 raises SystemError where another thread comes between, as it does in a finalizer."""
    path = tmp_path / "jobs.py"
    path.write_text("x = [[1], (2, {3: 4})]\n" * 200)

    def let_others_run(*_: object) -> None:
        time.sleep(0.0001)

    gc.callbacks.append(let_others_run)
    try:
        with ThreadPoolExecutor(4) as pool:
            trees = list(pool.map(lambda _: read_source(path).tree, range(20)))
    finally:
        gc.callbacks.remove(let_others_run)
    assert all(len(tree.body) == 200 for tree in trees)


DEFAULTS = toml_table(Path(__file__).with_name("defaults.toml"))


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_of_a_builtin(name):
    given = [one for one in describe(name).parameters if not one.required and one.kind != "var_positional"]
    assert {one.name: to_text(one.default) for one in given} == {
        key: text.replace("<image>", DEFAULT_IMAGE) for key, text in DEFAULTS[name].items()
    }


def test_parameter_without_help(component_file):
    component_file.write('def f(a: int, b) -> AppDef:\n    """Do.\n\n    Args:\n        b: words\n    """\n')
    a, b = read_component(component_file.name("f")).parameters
    assert (a.help, b.help) == ("", "words")
    assert (a.type.kind, b.type.kind, b.type.name) == ("int", "str", "str")
