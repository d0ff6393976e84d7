"""Resources by name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchx_tui.specs.errors import UnknownResourceError
from torchx_tui.specs.resource_names import (
    has_registered_resources,
    named_resource_names,
    named_resources,
)
from torchx_tui.specs.resources import Resource


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.delenv("TORCHX_CUSTOM_NAMED_RESOURCES", raising=False)
    monkeypatch.setenv("TORCHX_PLUGINS_SOURCE", "3")
    named_resources.reset()
    yield
    named_resources.reset()


def test_each_look_up_makes_a_new_one():
    named_resources["cpu.small"].capabilities["x"] = 1
    assert named_resources["cpu.small"].capabilities == {}


def test_an_unknown_name_gets_the_closest():
    with pytest.raises(KeyError) as caught:
        named_resources["gpu.smal"]
    assert isinstance(caught.value, UnknownResourceError)
    assert str(caught.value) == "No named resource found for `gpu.smal`. Did you mean `gpu.small`?"
    with pytest.raises(UnknownResourceError, match=r"Valid names: .*cpu\.nano"):
        named_resources["zzzzzz"]


def write_module(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)


def test_a_sites_module_adds_and_wins(tmp_path, monkeypatch):
    text = """
from torchx_tui.specs import Resource
NAMED_RESOURCES = {"big": lambda: Resource(1, 2, 3), "cpu.small": lambda: Resource(9, 0, 9)}
"""
    write_module(tmp_path, monkeypatch, "site_resources_a", text)
    monkeypatch.setenv("TORCHX_CUSTOM_NAMED_RESOURCES", "site_resources_a")
    assert named_resources["big"].gpu == 2
    assert named_resources["cpu.small"].cpu == 9
    assert "big" in named_resource_names()


def test_a_broken_module_of_a_site_takes_nothing_away(monkeypatch):
    monkeypatch.setenv("TORCHX_CUSTOM_NAMED_RESOURCES", "no_such_module_here")
    assert named_resources["cpu.small"].cpu == 1
    with pytest.raises(UnknownResourceError, match="no_such_module_here could not be read"):
        named_resources["big"]


def test_a_module_that_needs_torchx_says_what_to_do(tmp_path, monkeypatch):
    write_module(tmp_path, monkeypatch, "site_resources_b", "import torchx\n")
    monkeypatch.setitem(sys.modules, "torchx", None)  # type: ignore[arg-type]
    monkeypatch.setenv("TORCHX_CUSTOM_NAMED_RESOURCES", "site_resources_b")
    with pytest.raises(UnknownResourceError, match=r"install TorchX, or call .*load_named_resources first"):
        named_resources["big"]


REGISTERED = """
from torchx_tui.specs import Resource
from marks_of_resources import marked, of_another_package

@marked("team.big")
def big():
    return Resource(64, 8, 1)

@marked("team.broken")
def broken():
    raise RuntimeError("no such host")

def helper():
    return Resource(1, 1, 1)
"""
MARKS = """
def marked(name):
    def mark(factory):
        factory._plugin_type, factory._plugin_name = "torchx.named_resources", name
        return factory
    return mark

@marked("other.small")
def of_another_package():
    ...
"""


def test_modules_of_the_plugins_namespace(tmp_path, monkeypatch):
    """Those that TorchX's decorator marks, by the module that they are written in."""
    write_module(tmp_path, monkeypatch, "marks_of_resources", MARKS)
    folder = tmp_path / "torchx_plugins" / "named_resources"
    folder.mkdir(parents=True)
    (folder / "of_a_team.py").write_text(REGISTERED)
    (folder / "of_nobody.py").write_text("raise RuntimeError('no licence')")
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchx_plugins"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setenv("TORCHX_PLUGINS_SOURCE", "1")
    assert has_registered_resources()
    before = set(sys.modules)
    try:
        assert named_resources["team.big"].gpu == 8
    finally:
        for name in set(sys.modules) - before:
            del sys.modules[name]
    assert {"other.small", "helper"}.isdisjoint(named_resources)
    with pytest.raises(UnknownResourceError, match=r"team\.broken of torchx_plugins\.named_resources\.of_a_team could"):
        named_resources["team.broken"]
    with pytest.raises(UnknownResourceError, match=r"of_nobody could not be read: RuntimeError: no licence"):
        named_resources["zzz"]


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, group: str, lines: str) -> None:
    info = folder / "some_plugin-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-plugin\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{lines}\n")
    monkeypatch.syspath_prepend(str(folder))


def test_entry_points(tmp_path, monkeypatch):
    text = """
from dataclasses import make_dataclass
from torchx_tui.specs import Resource
Foreign = make_dataclass("Resource", ["cpu", "gpu", "memMB", "capabilities", "devices", "tags"])
def ours():
    return Resource(1, 1, 1)
def theirs():
    return Foreign(4, 5, 6, {"a": "b"}, {"efa": 1}, {"t": 2})
def broken():
    raise RuntimeError("no such host")
"""
    write_module(tmp_path, monkeypatch, "plugin_resources_a", text)
    names = ("ours", "theirs", "broken")
    install(tmp_path, monkeypatch, "torchx.named_resources", "\n".join(f"{n} = plugin_resources_a:{n}" for n in names))
    for source, has in (("0", False), ("1", False), ("2", True)):
        monkeypatch.setenv("TORCHX_PLUGINS_SOURCE", source)
        assert has_registered_resources() is has
    assert named_resources["ours"].cpu == 1
    theirs = named_resources["theirs"]
    assert isinstance(theirs, Resource)
    assert (theirs.cpu, theirs.gpu, theirs.memMB, theirs.capabilities) == (4, 5, 6, {"a": "b"})
    assert (theirs.devices, theirs.tags["t"], theirs.get_resource_name()) == ({"efa": 1}, 2, "theirs")
    with pytest.raises(UnknownResourceError, match="no such host"):
        named_resources["broken"]
