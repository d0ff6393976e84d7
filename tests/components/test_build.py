"""Components run: AppDefs from texts, and errors with file and line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.component_files import ComponentFile
from support.tables import toml_table

from torchx_tui.components.build import build_app
from torchx_tui.specs.errors import ArgumentError, ComponentLoadError

ROWS = toml_table(Path(__file__).with_name("build.toml"))


def app(body: str, parameters: str = "") -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f'def f({parameters}) -> AppDef:\n    """Do."""\n{lines}\n'


def test_texts_become_values_of_the_parameters_types(component_file):
    parameters = "a: int, b: bool, c: list[int], d: dict[str, float], e: float | None = 1.0, f: str = 'x', *, g: str"
    more = ", h: List[int], i: Dict[str, int], j: Tuple[int, str]"
    body = "return AppDef('app', [Role(repr((a, b, c, d, e, f, g)), repr((h, i, j)))])"
    component_file.write("from typing import Dict, List, Tuple\n" + app(body, parameters + more))
    texts = {"a": "3", "b": "off", "c": "1,2", "d": "x=1,y=2.5", "e": "", "g": "z"}
    texts |= {"h": "1,2", "i": "x=1", "j": "1,b"}
    built = build_app(component_file.name("f"), texts)
    assert built.roles[0].name == repr((3, False, [1, 2], {"x": 1.0, "y": 2.5}, None, "x", "z"))
    assert built.roles[0].image == repr(([1, 2], {"x": 1}, (1, "b")))


def test_varargs_follow_what_stands_before_them(component_file):
    component_file.write(
        app(
            "return AppDef(name, [Role('r', 'i', args=list(args))], {'k': k})",
            "name: str = 'n', *args: str, k: str = ''",
        )
    )
    built = build_app(component_file.name("f"), {"args": ["a b", "-c"], "k": "v"})
    assert (built.name, built.roles[0].args, built.metadata) == ("n", ["a b", "-c"], {"k": "v"})
    assert build_app(component_file.name("f"), {"args": "'a b' -c"}).roles[0].args == ["a b", "-c"]


def test_enums_and_aliases_of_the_file(component_file):
    text = "import enum\nCount = int\nclass Size(enum.Enum):\n    SMALL = 's'\n    LARGE = 'l'\n"
    text += app("return AppDef(f'{size!r} {count!r} {more!r}')", "size: Size, count: Count, more: Size | None = None")
    name = component_file.write(text).name("f")
    assert build_app(name, {"size": "LARGE", "count": "3"}).name == "<Size.LARGE: 'l'> 3 None"
    assert (
        build_app(name, {"size": "LARGE", "count": "3", "more": "SMALL"}).name
        == "<Size.LARGE: 'l'> 3 <Size.SMALL: 's'>"
    )
    with pytest.raises(ArgumentError, match="Use one of SMALL, LARGE"):
        build_app(name, {"size": "HUGE", "count": "3"})
    with pytest.raises(ArgumentError, match="count: `x` is not a whole number"):
        build_app(name, {"size": "LARGE", "count": "x"})


def test_a_type_that_is_there_for_type_checkers_only_takes_the_text(component_file):
    name = component_file.write(app("return AppDef(f'{kind!r}')", "kind: Nowhere")).name("f")
    assert build_app(name, {"kind": "x"}).name == "'x'"


def test_classes_are_built(component_file):
    text = """
class Trainer:
    def __init__(self, lr: float = 0.1):
        self.lr = lr
    def build(self) -> AppDef:
        return AppDef(f"lr {self.lr}")
"""
    assert build_app(component_file.write(text).name("Trainer"), {"lr": "0.5"}).name == "lr 0.5"


def test_an_edited_file_is_read_again(component_file):
    name = component_file.write(app("return AppDef('old')")).name("f")
    assert build_app(name, {}).name == "old"
    component_file.write(app("return AppDef('new')"))
    assert build_app(name, {}).name == "new"
    assert not (component_file.path.parent / "__pycache__").exists()


def test_neighbours_and_packages_can_be_imported(tmp_path):
    inner = tmp_path / "a_package_of_jobs"
    inner.mkdir()
    (inner / "__init__.py").write_text("")
    (inner / "names.py").write_text("NAME = 'neighbour'\n")
    head = "from torchx_tui.specs import AppDef\n"
    (inner / "jobs.py").write_text(head + "from .names import NAME\n" + app("return AppDef(NAME)"))
    (tmp_path / "a_neighbour_of_jobs.py").write_text("NAME = 'beside'\n")
    (tmp_path / "jobs.py").write_text(head + "from a_neighbour_of_jobs import NAME\n" + app("return AppDef(NAME)"))
    before = list(sys.path)
    assert build_app(f"{inner / 'jobs.py'}:f", {}).name == "neighbour"
    assert build_app(f"{tmp_path / 'jobs.py'}:f", {}).name == "beside"
    assert sys.path == before


@pytest.mark.parametrize("file", ["module_of_jobs.py", "module_of_jobs/__init__.py"])
def test_a_module_that_was_edited_is_run_again(file, tmp_path, monkeypatch):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    head = "from torchx_tui.specs import AppDef\n"
    path.write_text(head + app("return AppDef('first')"))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert build_app("module_of_jobs:f", {}).name == "first"
    path.write_text(head + app("return AppDef('second one')"))
    assert build_app("module_of_jobs:f", {}).name == "second one"
    assert "module_of_jobs" not in sys.modules


@pytest.mark.parametrize(
    ("body", "words"),
    ROWS["whatever_a_component_raises_has_file_and_line"],
)
def test_whatever_a_component_raises_has_file_and_line(component_file, body, words):
    component_file.write(app(body))
    for where in (component_file, ComponentFile(component_file.path).write(body + "\n" + app("pass"))):
        with pytest.raises(ComponentLoadError) as caught:
            build_app(where.name("f"), {})
        assert (caught.value.path, caught.value.line) == (str(where.path), where.line_of(body))
        assert words in str(caught.value)


def test_the_line_is_the_innermost_of_the_components_file(component_file):
    component_file.write("def inner():\n    int('x')\n" + app("inner()"))
    with pytest.raises(ComponentLoadError, match="invalid literal") as caught:
        build_app(component_file.name("f"), {})
    assert caught.value.line == component_file.line_of("int('x')")


def test_a_syntax_error_of_an_imported_file_names_that_file(component_file):
    beside = component_file.path.with_name("a_broken_neighbour.py")
    beside.write_text("x = 1\ndef f(:\n")
    component_file.write("import a_broken_neighbour\n" + app("pass"))
    with pytest.raises(ComponentLoadError) as caught:
        build_app(component_file.name("f"), {})
    assert (caught.value.path, caught.value.line) == (str(beside), 2)


@pytest.mark.parametrize("body", ["return None", "return 'app'", "pass"])
def test_what_is_no_appdef_is_refused(component_file, body):
    with pytest.raises(ComponentLoadError) as caught:
        build_app(component_file.write(app(body)).name("f"), {})
    assert caught.value.line == component_file.line_of("def f")
    assert caught.value.reason.startswith("a component returns AppDef, this one returned ")


FOREIGN = """
import enum
from dataclasses import dataclass, field
class RetryPolicy(str, enum.Enum):
    ROLE = "ROLE"
@dataclass
class Resource:
    cpu: int
    gpu: int
    memMB: int
    capabilities: dict
@dataclass
class BindMount:
    src_path: str
    dst_path: str
    read_only: bool
@dataclass
class Role:
    name: str
    image: str
    retry_policy: RetryPolicy
    resource: Resource
    mounts: list
    min_replicas: int = 2
    args: list = field(default_factory=lambda: ["x"])
@dataclass
class AppDef:
    name: str
    roles: list
    metadata: dict
"""


def test_appdefs_of_torchx_become_ours(component_file):
    role = "Role('r', 'i', RetryPolicy.ROLE, Resource(1, 2, 3, {'a': 'b'}), [BindMount('/a', '/b', True)])"
    component_file.write(FOREIGN + app(f"return AppDef('app', [{role}], {{'k': 'v'}})"), header="")
    built = build_app(component_file.name("f"), {})
    assert type(built).__module__.startswith("torchx_tui")
    (ours,) = built.roles
    assert (ours.name, ours.args, ours.min_replicas, ours.retry_policy.value) == ("r", ["x"], 2, "ROLE")
    assert (ours.resource.memMB, ours.resource.capabilities) == (3, {"a": "b"})
    assert type(ours.mounts[0]).__module__.startswith("torchx_tui")


@pytest.mark.parametrize(
    ("name", "texts", "words"),
    ROWS["arguments_that_are_refused"],
)
def test_arguments_that_are_refused(name, texts, words):
    with pytest.raises(ArgumentError) as caught:
        build_app(name, texts)
    assert words in str(caught.value)
