"""Every name that the documentation of TorchX states is here, with its parameters and defaults, or has a reason."""

import importlib
import inspect
import runpy
import sys
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from interop.documented import PARTS

import torchx_tui.specs as specs
from torchx_tui.backends.registry import get_scheduler_factories
from torchx_tui.cli.commands import build_parser
from torchx_tui.specs.mounts import parse_mounts
from torchx_tui.specs.resource_names import named_resources

DOCS = Path(__file__).parents[2] / "docs/reference"
DOCUMENTED = [
    pytest.param(entry, id=f"{part.title}: {entry.name}") for part in PARTS for entry in part.names if entry.here
]
REQUIRED = inspect.Parameter.empty
BY_POSITION = inspect.Parameter.POSITIONAL_OR_KEYWORD
NAMES = {name: getattr(specs, name) for name in ("AppState", "Resource", "RetryPolicy")}
"""What documented defaults are written with."""


def find(here) -> Any:
    """Return what an entry's `here` stands for."""
    module, _, path = here.partition(":")
    found = importlib.import_module(module)
    for name in filter(None, path.split(".")):
        found = getattr(found, name)
    return found


def owner_of(here):
    """Return the class of a member, and the member's name."""
    path, _, name = here.rpartition(".")
    return find(path), name


def default_of(called, parameter):
    """Return a default; of a dataclass's factory the factory itself where it is a type, else what it makes."""
    if repr(parameter.default) != "<factory>":
        return parameter.default
    factory = called.__dataclass_fields__[parameter.name].default_factory
    return factory if isinstance(factory, type) else factory()


def same(one, other):
    return type(one) is type(other) and one == other


def check_parameters(entry, called):
    if not entry.says:
        return
    wanted = dict(inspect.signature(eval(f"lambda {entry.says[1:-1]}: None", NAMES)).parameters)
    ours = dict(inspect.signature(called).parameters)
    if entry.what in ("method", "abstract method"):
        ours.pop("self")
    assert [name for name in ours if name in wanted] == list(wanted)
    assert [name for name in ours if name not in wanted] == list(entry.adds)
    for name, parameter in ours.items():
        if name not in wanted:
            assert parameter.default is not REQUIRED, f"{name} cannot be left out"
            assert parameter.kind in (BY_POSITION, parameter.KEYWORD_ONLY), name
            continue
        assert parameter.kind is wanted[name].kind, name
        if name in entry.gives_default:
            assert wanted[name].default is REQUIRED, f"{name} is documented with a default"
            assert parameter.default is not REQUIRED, f"{name} has no default here"
        else:
            assert same(default_of(called, parameter), wanted[name].default), name
    if entry.kind != "generation":
        in_order, first = ([n for n, one in some.items() if one.kind is BY_POSITION] for some in (ours, wanted))
        assert in_order[: len(first)] == first


def check_called(entry):
    """Check a class, a function or a method, as its class has it."""
    found = find(entry.here)
    is_kind = {
        "class": inspect.isclass,
        "static method": lambda one: isinstance(one, staticmethod),
        "class method": lambda one: isinstance(one, classmethod),
    }.get(entry.what, inspect.isfunction)
    assert is_kind(inspect.getattr_static(*owner_of(entry.here)) if "method" in entry.what else found)
    if entry.what == "abstract method":
        owner, name = owner_of(entry.here)
        assert name in owner.__abstractmethods__
    check_parameters(entry, found)


def check_attribute(entry):
    """Check that objects of a class have it, or that a module has it."""
    if "." not in entry.here.partition(":")[2]:
        assert find(entry.here) is not None
        return
    owner, name = owner_of(entry.here)
    abstract = dict.fromkeys(getattr(owner, "__abstractmethods__", ()))
    required = [one for one in inspect.signature(owner).parameters.values() if one.default is REQUIRED]
    assert hasattr(type("Made", (owner,), abstract)(*(one.name for one in required)), name)


def check_members(entry):
    found = find(entry.here)
    assert issubclass(found, Enum)
    wanted = dict(word.partition("=")[::2] for word in entry.says.split(", "))
    assert [member.name for member in found] == [*wanted, *entry.adds]
    for name, value in wanted.items():
        assert not value or found[name].value == eval(value)


def check_scheduler(entry):
    found = get_scheduler_factories()[entry.name]("documented")
    found.close()
    assert type(found) is find(entry.here)


def check_run_option(entry):
    scheduler = find(entry.here)("documented")
    option = dict(scheduler.run_opts())[entry.name]
    scheduler.close()
    kind, _, rest = entry.says.partition(", ")
    # An addition: it may be left out.
    is_required = rest == "required" and entry.kind != "addition"
    assert (option.opt_type.__name__, option.is_required) == (kind, is_required)
    assert same(option.default, None if rest == "required" else eval(rest))


def check_command(entry):
    program, *words = entry.name.split()
    assert (program, find(entry.here)) == ("torchx", build_parser)
    assert build_parser().parse_args(words).command == words[0]


CHECKS = {
    "module": lambda entry: inspect.ismodule(find(entry.here)),
    "value": lambda entry: same(find(entry.here), eval(entry.says)),
    "alias": lambda entry: find(entry.here) is find(entry.says),
    "base class": lambda entry: issubclass(find(entry.here), find(entry.says)),
    "named resource": lambda entry: (
        find(entry.here) is named_resources and named_resources[entry.says].get_resource_name() == entry.says
    ),
    "mount": lambda entry: all(
        [type(one) for one in parse_mounts(text.split(","))] == [find(entry.here)] for text in entry.says.split(" ")
    ),
    "component": lambda entry: set(entry.says.split(", ")) <= set(inspect.signature(find(entry.here)).parameters),
    "attribute": check_attribute,
    "members": check_members,
    "scheduler": check_scheduler,
    "run option": check_run_option,
    "command": check_command,
}


@pytest.fixture(autouse=True)
def _no_cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))


@pytest.mark.parametrize("entry", DOCUMENTED)
def test_a_documented_name_is_here(entry):
    assert CHECKS.get(entry.what, check_called)(entry) in (None, True)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.title)
def test_a_name_is_listed_once_and_has_a_reason(part):
    names = [entry.name for entry in part.names]
    assert len(names) == len(set(names))
    for entry in part.names:
        assert (entry.what == "not here") == (not entry.here), entry.name
        assert bool(entry.why) == bool(entry.kind or not entry.here), entry.name


@pytest.mark.parametrize("name", ["compatibility", "signatures"])
def test_a_page_is_up_to_date(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchx", None)  # a page is made without TorchX
    page = runpy.run_path(str(DOCS / f"{name}.py"))["page"]
    assert (DOCS / f"{name}.md").read_text(encoding="utf-8") == page(), f"run: python docs/reference/{name}.py"
