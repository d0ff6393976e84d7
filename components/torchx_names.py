"""Names of `torchx.specs.finder`, `torchx.specs.builders` and `torchx.components.dist` that differ in torchx-tui."""

from __future__ import annotations

import importlib
import inspect
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

from ..guest.plain import call_component
from ..specs import AppDef, ComponentLoadError
from .build import parse_arguments
from .command_line import parse_command_line
from .dist import program_name
from .finder import Component, builtins, describe, find, read_component
from .topology import parse_topology


@dataclass(frozen=True)
class LoadedComponent:
    """A component and its function, as TorchX's finder gives it.

    Args:
        name: Its name.
        description: Its summary.
        fn_name: The name of its function.
        fn: The function.
        validation_errors: The errors of the linter.
    """

    name: str
    description: str
    fn_name: str
    fn: Callable[..., Any]
    validation_errors: list[str]


def get_component(name: str) -> LoadedComponent:
    """Find a component and import its function. Raises as `find` does."""
    component, doc = find(name), read_component(name)
    errors = [finding.description for finding in doc.findings if finding.severity == "error"]
    return LoadedComponent(name, doc.summary, component.function, _load(component), errors)


def get_components() -> dict[str, LoadedComponent]:
    """Import the builtin components; return them by name."""
    return {component.name: get_component(component.name) for component in builtins()}


def _load(component: Component) -> Callable[..., Any]:
    if component.module:
        module = importlib.import_module(component.module)
    else:
        spec = spec_from_file_location(component.path.stem, component.path)
        if spec is None or spec.loader is None:
            raise ComponentLoadError(str(component.path), None, "its name does not end in .py")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    return getattr(module, component.function)


def materialize_appdef(
    cmpnt_fn: Callable[..., Any],
    cmpnt_args: Sequence[str],
    cmpnt_defaults: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
) -> AppDef:
    """Call a component's function with the arguments of a command line.

    Args:
        cmpnt_fn: The function.
        cmpnt_args: The arguments.
        cmpnt_defaults: Texts of arguments that are not on the command line.
        config: Values for these arguments; they override the defaults.
    """
    name = f"{inspect.getsourcefile(cmpnt_fn)}:{cmpnt_fn.__name__}"
    doc = describe(name)
    given = parse_command_line(name, cmpnt_args)
    texts = {**(cmpnt_defaults or {}), **{key: str(value) for key, value in (config or {}).items()}, **given}
    values = parse_arguments(doc, texts)
    rest = next((values.pop(item.name, ()) for item in doc.parameters if item.kind == "var_positional"), ())
    return call_component(cmpnt_fn, rest, values)


def parse_nnodes(j: str) -> tuple[int, int, int, str]:
    """Parse `2x8`, `1:4x8` or `8`: the fewest and the most nodes, the workers per node, the nodes as text."""
    topology = parse_topology(j)
    return topology.fewest, topology.nodes, topology.workers, topology.nodes_text


def get_role_name(script: str | None, m: str | None) -> str:
    """Name a role after its script or module.

    Raises:
        ValueError: Neither is given.
    """
    if not script and not m:
        raise ValueError("a role is named after its script or module; neither is given")
    return program_name(script, m)


class Unquoted(str):
    """An argument that `join_arguments` does not quote, so that a shell expands it."""

    __slots__ = ()


def join_arguments(words: Iterable[str]) -> str:
    """Quote arguments for a shell and join them."""
    return " ".join(word if isinstance(word, Unquoted) else shlex.quote(word) for word in words)
