"""Every name that the documentation of TorchX states is here, with parameters and defaults, or told as different."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from interop.documented import PARTS
from interop.documented_names import Difference, Documented

import torchx_tui.specs as specs
from torchx_tui.backends.registry import get_scheduler_factories
from torchx_tui.cli.main import build_parser
from torchx_tui.specs import named_resources, parse_mounts

DOCS = Path(__file__).parents[2] / "docs" / "reference"
DOCUMENTED = [
    pytest.param(entry, id=f"{part.title}: {entry.name}") for part in PARTS for entry in part.names if entry.here
]
NOWHERE = inspect.Parameter.empty
NAMES = {name: getattr(specs, name) for name in ("AppState", "Resource", "RetryPolicy")}
"""What documented defaults are written with."""


def find(here: str) -> Any:
    """Return what an entry's `here` stands for."""
    module, _, path = here.partition(":")
    found: Any = importlib.import_module(module)
    for name in filter(None, path.split(".")):
        found = getattr(found, name)
    return found


def owner_of(here: str) -> tuple[type, str]:
    """Return the class of a member, and the member's name."""
    path, _, name = here.rpartition(".")
    return find(path), name


def raw_member(here: str) -> Any:
    """Return a member as its class has it: a static method as such."""
    owner, name = owner_of(here)
    return inspect.getattr_static(owner, name)


def documented_parameters(says: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(eval(f"lambda {says[1:-1]}: None", NAMES)).parameters)


def own_parameters(called: Any, *, bound: bool) -> dict[str, inspect.Parameter]:
    """Return the parameters as a caller gives them."""
    found = dict(inspect.signature(called).parameters)
    if not bound:
        found.pop("self")
    return found


def made_default(called: Any, parameter: inspect.Parameter) -> Any:
    """Return a default, of a dataclass's factory the factory itself where it is a type, else what it makes."""
    if repr(parameter.default) != "<factory>":
        return parameter.default
    factory = called.__dataclass_fields__[parameter.name].default_factory
    return factory if isinstance(factory, type) else factory()


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def check_parameters(entry: Documented, called: Any, *, bound: bool) -> None:
    wanted = documented_parameters(entry.says)
    ours = own_parameters(called, bound=bound)
    difference = entry.difference or Difference("addition", "")
    assert [name for name in ours if name in wanted] == list(wanted)
    for name, parameter in wanted.items():
        assert ours[name].kind is parameter.kind, name
        if name in difference.gives_default:
            assert parameter.default is NOWHERE, f"{name} is documented with a default"
            assert ours[name].default is not NOWHERE, f"{name} has no default here"
        else:
            assert same(made_default(called, ours[name]), parameter.default), name
    further = {name: parameter for name, parameter in ours.items() if name not in wanted}
    assert tuple(further) == difference.adds
    for name, parameter in further.items():
        assert parameter.default is not NOWHERE, f"{name} cannot be left out"
        assert parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY), name
    if difference.kind != "generation":
        in_order = [name for name, parameter in ours.items() if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
        first = [name for name, parameter in wanted.items() if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
        assert in_order[: len(first)] == first


def check_module(entry: Documented) -> None:
    assert inspect.ismodule(find(entry.here))


def check_class(entry: Documented) -> None:
    found = find(entry.here)
    assert inspect.isclass(found)
    if entry.says:
        check_parameters(entry, found, bound=True)


def check_function(entry: Documented) -> None:
    found = find(entry.here)
    assert inspect.isfunction(found)
    if entry.says:
        check_parameters(entry, found, bound=True)


def check_method(entry: Documented) -> None:
    assert inspect.isfunction(raw_member(entry.here))
    if entry.says:
        check_parameters(entry, find(entry.here), bound=False)


def check_static_method(entry: Documented) -> None:
    assert isinstance(raw_member(entry.here), staticmethod)
    check_parameters(entry, find(entry.here), bound=True)


def check_class_method(entry: Documented) -> None:
    assert isinstance(raw_member(entry.here), classmethod)
    check_parameters(entry, find(entry.here), bound=True)


def check_abstract_method(entry: Documented) -> None:
    owner, name = owner_of(entry.here)
    assert name in owner.__abstractmethods__  # type: ignore[attr-defined]
    check_method(entry)


def check_attribute(entry: Documented) -> None:
    """Of a class, objects have it; of a module, the module has it."""
    if "." not in entry.here.partition(":")[2]:
        assert find(entry.here) is not None
        return
    owner, name = owner_of(entry.here)
    abstract: dict[str, Any] = dict.fromkeys(getattr(owner, "__abstractmethods__", ()))
    required = [p for p in inspect.signature(owner).parameters.values() if p.default is NOWHERE]
    assert hasattr(type("Made", (owner,), abstract)(*(p.name for p in required)), name)


def check_value(entry: Documented) -> None:
    assert same(find(entry.here), eval(entry.says))


def check_members(entry: Documented) -> None:
    found = find(entry.here)
    assert issubclass(found, Enum)
    wanted: dict[str, str] = {}
    for word in entry.says.split(", "):
        name, _, value = word.partition("=")
        wanted[name] = value
    adds = entry.difference.adds if entry.difference else ()
    assert [member.name for member in found] == [*wanted, *adds]
    for name, value in wanted.items():
        assert not value or found[name].value == eval(value)


def check_alias(entry: Documented) -> None:
    assert find(entry.here) is find(entry.says)


def check_base_class(entry: Documented) -> None:
    assert issubclass(find(entry.here), find(entry.says))


def check_scheduler(entry: Documented) -> None:
    found = get_scheduler_factories()[entry.name]("documented")
    try:
        assert type(found) is find(entry.here)
    finally:
        found.close()


def check_run_option(entry: Documented) -> None:
    scheduler = find(entry.here)("documented")
    try:
        option = dict(scheduler.run_opts())[entry.name]
    finally:
        scheduler.close()
    kind, _, rest = entry.says.partition(", ")
    assert option.opt_type.__name__ == kind
    assert option.is_required == (rest == "required")
    assert same(option.default, None if option.is_required else eval(rest))


def check_named_resource(entry: Documented) -> None:
    assert find(entry.here) is named_resources
    assert named_resources[entry.says].get_resource_name() == entry.says


def check_mount(entry: Documented) -> None:
    for text in entry.says.split(" "):
        (mount,) = parse_mounts(text.split(","))
        assert type(mount) is find(entry.here)


def check_component(entry: Documented) -> None:
    assert set(entry.says.split(", ")) <= set(inspect.signature(find(entry.here)).parameters)


def check_command(entry: Documented) -> None:
    program, *words = entry.name.split()
    assert program == "torchx"
    assert find(entry.here) is build_parser
    assert build_parser().parse_args(words).command == words[0]


CHECKS: dict[str, Callable[[Documented], None]] = {
    "module": check_module,
    "class": check_class,
    "function": check_function,
    "method": check_method,
    "static method": check_static_method,
    "class method": check_class_method,
    "abstract method": check_abstract_method,
    "attribute": check_attribute,
    "value": check_value,
    "members": check_members,
    "alias": check_alias,
    "base class": check_base_class,
    "scheduler": check_scheduler,
    "run option": check_run_option,
    "named resource": check_named_resource,
    "mount": check_mount,
    "component": check_component,
    "command": check_command,
}


@pytest.fixture(autouse=True)
def _on_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the state and the cluster of the person who runs the tests out of it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))


@pytest.mark.parametrize("entry", DOCUMENTED)
def test_a_documented_name_is_here_with_its_parameters_and_defaults(entry: Documented):
    CHECKS[entry.what](entry)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.title)
def test_a_name_is_listed_once_and_what_is_not_here_says_why(part):
    names = [entry.name for entry in part.names]
    assert len(names) == len(set(names))
    for entry in part.names:
        assert (entry.what == "not here") == (not entry.here) == (_kind(entry) == "not here"), entry.name
        if entry.difference is not None:
            assert entry.difference.why.strip().rstrip("."), entry.name


def _kind(entry: Documented) -> str:
    return entry.difference.kind if entry.difference else ""


def test_the_page_is_made_of_the_list():
    spec = importlib.util.spec_from_file_location("signatures_page", DOCS / "signatures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (DOCS / "signatures.md").read_text(encoding="utf-8") == module.page(), (
        "run: python docs/reference/signatures.py"
    )
