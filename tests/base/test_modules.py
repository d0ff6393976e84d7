"""Where modules are, without importing them, and where plugins are looked for."""

from __future__ import annotations

import ast
import sys
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import pytest

from torchx_tui.base.modules import (
    module_path,
    module_spec,
    namespace_modules,
    parse_source,
    plugin_sources,
    plugin_sources_error,
    submodules,
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in (
        *("pack_a/__init__.py", "pack_a/one.py", "pack_a/sub/__init__.py", "pack_a/sub/two.py", "pack_a/text.txt"),
        *(
            "pack_a/plain/three.py",
            "bare_b/inner/three.py",
            "torchx_plugins/schedulers/s.py",
            "torchx_plugins/schedulers/_hidden.py",
        ),
        *("torchx_plugins/schedulers/deep/__init__.py", "torchx_plugins/schedulers/deep/t.py"),
        *("torchx_plugins/schedulers/bare/u.py", "torchx_plugins/schedulers/v.cpython.py"),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise SystemExit")
    return tmp_path


def test_modules_are_found_without_importing(folder):
    assert module_path("pack_a.sub.two") == folder / "pack_a/sub/two.py"
    assert module_path("pack_a") == folder / "pack_a/__init__.py"
    assert [module_path(name) for name in ("nosuch", "pack_a.nosuch", "nosuch.x", "pack_a..two", "", "sys")] == [
        None
    ] * 6
    assert list(submodules("pack_a")) == [
        ("pack_a", folder / "pack_a/__init__.py"),
        ("pack_a.one", folder / "pack_a/one.py"),
        ("pack_a.sub", folder / "pack_a/sub/__init__.py"),
        ("pack_a.sub.two", folder / "pack_a/sub/two.py"),
    ]
    # Folders without `__init__.py` have no file of their own.
    assert module_path("pack_a.plain") is None
    for name in ("pack_a.plain", "bare_b.inner"):
        path = folder / name.replace(".", "/") / "three.py"
        assert module_path(f"{name}.three") == path
        assert list(submodules(name)) == [(f"{name}.three", path)]
    assert list(submodules("nosuch")) == []
    assert "pack_a" not in sys.modules


def test_what_only_another_finder_knows_is_found(folder, monkeypatch):
    """So editable installs are found: the package by their finder, its modules by its folders."""
    spec = ModuleSpec("edited", None, is_package=True)
    spec.submodule_search_locations = [str(folder / "pack_a")]

    def find_spec(name, *_):
        if name in ("edited_import", "edited_value"):
            raise ImportError if name == "edited_import" else ValueError
        return spec if name == "edited" else None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, SimpleNamespace(find_spec=find_spec)])
    assert module_spec("edited") is spec
    assert module_path("edited.sub.two") == folder / "pack_a/sub/two.py"
    for name in ("edited_import", "edited_value", "edited_a.b", "edited.none", "edited_import.sub"):
        assert module_spec(name) is None


def test_modules_of_the_plugins_namespace(folder):
    names = [name for name, path in namespace_modules("schedulers") if path.is_relative_to(folder)]
    assert names == [
        "torchx_plugins.schedulers.bare.u",
        "torchx_plugins.schedulers.deep",
        "torchx_plugins.schedulers.deep.t",
        "torchx_plugins.schedulers.s",
    ]
    assert list(namespace_modules("nosuch")) == []


@pytest.mark.parametrize(
    ("given", "sources"),
    [
        (None, (True, True)),
        ("0", (False, False)),
        ("1", (True, False)),
        ("2", (False, True)),
        ("3", (True, True)),
        ("4", (True, True)),
        ("-1", (True, True)),
        ("x", (True, True)),
    ],
)
def test_sources_of_plugins(given, sources, monkeypatch):
    monkeypatch.delenv("TORCHX_PLUGINS_SOURCE")
    if given is not None:
        monkeypatch.setenv("TORCHX_PLUGINS_SOURCE", given)
    assert plugin_sources() == sources
    assert bool(plugin_sources_error()) == (given in ("4", "-1", "x"))


def test_source_is_parsed_while_another_thread_parses(monkeypatch):
    """What CPython 3.11 raises then, for a moment."""
    parse, raised = ast.parse, iter(range(3))

    def disturbed(*arguments):
        if next(raised, None) is not None:
            raise SystemError("AST constructor recursion depth mismatch (before=51, after=208)")
        return parse(*arguments)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert isinstance(parse_source("x = 1").body[0], ast.Assign)


def test_a_module_that_is_no_python_has_no_source():
    assert list(submodules("_ssl")) == []
