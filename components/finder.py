"""Components by name: the builtins, those of installed packages, of files and of modules. Nothing is run.

`utils.echo` is a builtin or a plugin's; `train.py:trainer` a function in a file; `package.module:trainer` and
`package.module.trainer` one in a module.
"""

from __future__ import annotations

import ast
import difflib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain
from pathlib import Path

from ..specs import ComponentLoadError, ComponentNotFoundException, ComponentValidationException
from .docstrings import first_sentence, read_docstring
from .lint import lint_definition
from .model import ComponentDoc, ComponentKind, ComponentSummary, Computed, Parameter
from .modules import module_path, submodules
from .source import Definition, SourceFile, parameters_of, read_source

logger = logging.getLogger(__name__)

ENTRY_POINT_GROUP = "torchx.components"
BUILTIN_MODULES = ("utils", "dist", "demo")
_FORMS = {"j": "topology", "h": "resource", "mounts": "mounts"}
# A component's file is written by people: what is larger was generated.
_LARGEST_FILE = 1 << 20


@dataclass(frozen=True)
class Component:
    """A component that was found, not yet run.

    Args:
        name: What it was found by.
        kind: Where it comes from.
        path: Its file.
        function: Its function or class in that file.
        module: The module's name, empty for a file.
    """

    name: str
    kind: ComponentKind
    path: Path
    function: str
    module: str = ""

    @cached_property
    def source(self) -> SourceFile:
        """Its parsed file. Raises ComponentLoadError where that is not Python."""
        return read_source(self.path)

    @cached_property
    def definition(self) -> Definition:
        """Its function or class.

        Raises:
            ComponentLoadError: The file is not Python.
            ComponentNotFoundException: The file has no such function; the message has those that it has.
        """
        node = self.source.definition(self.function)
        if node is None:
            there = [node.name for node in self.source.components]
            raise ComponentNotFoundException(_not_found(self.name, f"{self.path} has no {self.function}", there))
        return node

    @cached_property
    def parameters(self) -> list[Parameter]:
        """Its parameters. Raises as `definition` does."""
        parameters = parameters_of(self.source, self.definition)
        if self.kind != "builtin":
            return parameters
        return [_of_builtin(parameter) for parameter in parameters]


def find(name: str) -> Component:
    """Return the component of a name.

    Raises:
        ComponentNotFoundException: There is none; the message has close names and what names look like.
        ComponentLoadError: Its file is not Python.
    """
    component = _in_file_or_module(name) if ":" in name else _registered(name)
    if component is None:
        known = [found.name for found in (*_builtins(), *_plugins())]
        raise ComponentNotFoundException(_not_found(name, f"There is no component {name}", known))
    _ = component.definition
    return component


def describe(name: str) -> ComponentDoc:
    """Return what a form for a component needs.

    Raises:
        ComponentNotFoundException: There is none of the name.
        ComponentLoadError: Its file is not Python.
        ComponentValidationException: It breaks a rule of `validate`; the message has file, line and fault.
    """
    component = find(name)
    faults = [fault for fault in lint_definition(component.source, component.definition) if fault.severity == "error"]
    if faults:
        lines = [f"{component.path}:{fault.line}: {fault.description}" for fault in faults]
        raise ComponentValidationException("\n".join(lines))
    docstring = read_docstring(ast.get_docstring(component.definition, clean=False))
    return ComponentDoc(
        name=name,
        kind=component.kind,
        summary=docstring.summary,
        description=docstring.description,
        parameters=component.parameters,
        path=component.path,
        line=component.definition.lineno,
    )


def list_components(folders: Sequence[Path] = ()) -> list[ComponentSummary]:
    """Return the builtins, those of installed packages, and those of the Python files in folders.

    A file that mentions AppDef but is not Python, and a component that breaks a rule, are there with their error.

    Args:
        folders: Looked at without the folders below them.
    """
    found = [_summary(component) for component in (*_builtins(), *_plugins())]
    for folder in folders:
        for path in sorted(folder.glob("*.py")):
            found += _in_listed_file(path)
    return found


def _builtins() -> tuple[Component, ...]:
    return tuple(component for module in BUILTIN_MODULES for component in _builtins_of(module))


@cache
def _builtins_of(module: str) -> tuple[Component, ...]:
    path = Path(__file__).parent / f"{module}.py"
    return tuple(
        Component(f"{module}.{node.name}", "builtin", path, node.name, f"{__package__}.{module}")
        for node in read_source(path).components
    )


def _plugins() -> Iterator[Component]:
    """Give the components of the entry points, save those that have a builtin's name."""
    from importlib.metadata import entry_points

    taken = {component.name for component in _builtins()}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        base = entry.value.partition(":")[0]
        # TorchX's rule: a name that begins with an underscore adds no prefix.
        prefix = [] if entry.name.startswith("_") else [entry.name]
        try:
            modules = list(submodules(base))
        except OSError as error:
            logger.warning("components of the entry point %s: %s", entry.name, error)
            continue
        for module, path in modules:
            below = [part for part in module.removeprefix(base).split(".") if part]
            for function in _component_names(path):
                name = ".".join([*prefix, *below, function])
                if name not in taken:
                    taken.add(name)
                    yield Component(name, "plugin", path, function, module)


def _component_names(path: Path) -> list[str]:
    try:
        return [node.name for node in read_source(path).components]
    except ComponentLoadError as error:
        logger.warning("%s", error)
        return []


def _registered(name: str) -> Component | None:
    module, _, function = name.rpartition(".")
    # Entry points are read only for what is no builtin.
    for component in chain(_builtins_of(module) if module in BUILTIN_MODULES else (), _plugins()):
        if component.name == name:
            return component
    path = module_path(module) if module else None
    return Component(name, "module", path, function, module) if path else None


def _in_file_or_module(name: str) -> Component | None:
    place, _, function = name.rpartition(":")
    path = Path(place).expanduser()
    if path.is_file():
        return Component(name, "file", path.absolute(), function)
    if place.endswith(".py") or "/" in place:
        raise ComponentNotFoundException(f"{name}: there is no file {path.absolute()}")
    found = module_path(place)
    if found is None:
        raise ComponentNotFoundException(f"{name}: there is no file and no module {place}")
    return Component(name, "module", found, function, place)


def _in_listed_file(path: Path) -> list[ComponentSummary]:
    shown = _shown(path)
    try:
        if path.stat().st_size > _LARGEST_FILE or b"AppDef" not in path.read_bytes():
            return []
        source = read_source(path)
    except OSError:
        return []
    except ComponentLoadError as error:
        return [ComponentSummary(shown, "file", path, error.line or 0, error=error.reason)]
    components = [Component(f"{shown}:{node.name}", "file", path, node.name) for node in source.components]
    return [_summary(component) for component in components]


def _shown(path: Path) -> str:
    """Return a path as a person would type it here."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def _summary(component: Component) -> ComponentSummary:
    node = component.definition
    faults = [fault for fault in lint_definition(component.source, node) if fault.severity == "error"]
    return ComponentSummary(
        name=component.name,
        kind=component.kind,
        path=component.path,
        line=faults[0].line if faults else node.lineno,
        summary=first_sentence(ast.get_docstring(node)),
        error=faults[0].description if faults else None,
    )


def _of_builtin(parameter: Parameter) -> Parameter:
    """Return a builtin's parameter with what only we know of it: the default image, and what its text means."""
    if isinstance(parameter.default, Computed) and parameter.default.text == "DEFAULT_IMAGE":
        from .image import DEFAULT_IMAGE

        parameter = replace(parameter, default=DEFAULT_IMAGE)
    return replace(parameter, form=_FORMS.get(parameter.name, ""))


def _not_found(name: str, reason: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name.rpartition(":")[2] if ":" in name else name, known, n=3, cutoff=0.5)
    if close:
        return f"{reason}. Did you mean {' or '.join(close)}?"
    if ":" in name:
        return f"{reason}. Components there: {', '.join(known) or 'none'}"
    return f"{reason}. Want a builtin such as utils.echo, file.py:function, or package.module:function"
