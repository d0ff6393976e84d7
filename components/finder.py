"""Lists components and finds them by name: builtins, those of packages, of files and of modules. Nothing is run.

`utils.echo` is a builtin or a plugin's; `train.py:trainer` a function in a file; `package.module:trainer` and
`package.module.trainer` a component in a module; `train.py` and `-m package.module` are Python scripts, `train.sbatch`
and `./train.sh` batch scripts.
"""

from __future__ import annotations

import ast
import difflib
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.files import is_file, is_folder, is_missing, read_file
from ..base.modules import module_path
from ..base.trust import owner_of
from ..guest.packages import Report, component_packages, module_path_of, project_interpreter
from ..specs.errors import ComponentLoadError, ComponentNotFoundException, ComponentValidationException
from .docstrings import first_sentence, read_docstring
from .image import DEFAULT_IMAGE
from .lint import lint_definition
from .model import ComponentDoc, ComponentKind, ComponentSummary, Computed, Parameter
from .python_script import MODULE, describe_python, is_python_name, python_path
from .sbatch import describe_batch_script
from .sbatch_script import SUFFIX, is_batch_name, is_script, read_script
from .script_source import script_docstring
from .source import Definition, SourceFile, parameters_of, read_bytes, read_source

if TYPE_CHECKING:
    from ..guest.interpreter import Interpreter


_log = logging.getLogger(__name__)

BUILTIN_MODULES = ("utils", "dist", "demo")
SUFFIXES = (".py", SUFFIX, ".slurm", ".sh", ".bash", ".batch", ".job")
"""The ends of the names of files that are searched for components and scripts."""
_BUILTIN_FORMS = {"j": "topology", "h": "resource", "mounts": "mounts"}


@dataclass(frozen=True)
class Component:
    """A component that was found; its code has not run.

    Args:
        name: The name that it was found by.
        kind: Where it comes from.
        path: Its file.
        function: Its function or class in that file, empty for a script.
        module: The module's name, empty for a file.
        interpreter: That of the project's environment if its package is installed there, else None.
    """

    name: str
    kind: ComponentKind
    path: Path
    function: str
    module: str = ""
    interpreter: Interpreter | None = None

    @cached_property
    def source(self) -> SourceFile:
        """Its parsed file. Raises ComponentLoadError where that is not Python."""
        return read_source(self.path)

    @cached_property
    def definition(self) -> Definition:
        """Its function or class.

        Raises:
            ComponentLoadError: The file is not Python.
            ComponentNotFoundException: The file has no such function; the message lists its components.
        """
        node = self.source.definitions.get(self.function)
        if node is None:
            there = [node.name for node in self.source.components]
            raise ComponentNotFoundException(
                _describe_not_found(self.name, f"{self.path} has no {self.function}", there)
            )
        return node

    @cached_property
    def parameters(self) -> list[Parameter]:
        """Its parameters. Raises as `definition` does."""
        parameters = parameters_of(self.source, self.definition)
        if self.kind != "builtin":
            return parameters
        # What only we know of a builtin's parameter: the default image, and the syntax of its text.
        image = Computed("DEFAULT_IMAGE")
        return [
            replace(
                parameter,
                default=DEFAULT_IMAGE if parameter.default == image else parameter.default,
                form=_BUILTIN_FORMS.get(parameter.name, ""),
            )
            for parameter in parameters
        ]


def is_script_name(name: str) -> bool:
    """Return whether a name is that of a script: ``train.py``, ``-m package.module``, ``train.sbatch``."""
    return is_batch_name(name) or is_python_name(name)


def find(name: str) -> Component:
    """Find the component of a name.

    Raises:
        ComponentNotFoundException: There is none; the message has close names, or the forms of names.
        ComponentLoadError: Its file is not Python.
    """
    if is_script_name(name):
        path = python_path(name) if is_python_name(name) else read_script(name).path
        return Component(name, "script", path, "")
    component = _find_in_file_or_module(name) if ":" in name else _find_registered(name)
    if component is None:
        known = [candidate.name for candidate in (*builtins(), *plugins())]
        raise ComponentNotFoundException(_describe_not_found(name, f"There is no component {name}", known))
    _ = component.definition
    return component


def describe(name: str) -> ComponentDoc:
    """Return the description of a component that can be launched.

    Raises:
        ComponentNotFoundException: There is none of the name.
        ComponentLoadError: Its file is not Python.
        ComponentValidationException: It breaks a rule of `validate`; the message has file, line and fault.
    """
    doc = read_component(name)
    faults = [fault for fault in doc.findings if fault.severity == "error"]
    if faults:
        raise ComponentValidationException(
            "\n".join(f"{doc.path}:{fault.line}: {fault.description}" for fault in faults)
        )
    return doc


def read_component(name: str) -> ComponentDoc:
    """Return the description of a component, with its findings, also if they prevent its launch.

    Raises:
        ComponentNotFoundException: There is none of the name.
        ComponentLoadError: Its file is not Python.
    """
    if is_script_name(name):
        return describe_python(name) if is_python_name(name) else describe_batch_script(name)
    component = find(name)
    docstring = read_docstring(ast.get_docstring(component.definition, clean=False))
    return ComponentDoc(
        name=name,
        kind=component.kind,
        summary=docstring.summary,
        description=docstring.description,
        parameters=component.parameters,
        path=component.path,
        line=component.definition.lineno,
        module=component.module,
        findings=tuple(lint_definition(component.source, component.definition)),
    )


def get_builtin_source(name: str) -> str:
    """Return the source of the file that has a component; a copy of a builtin's file is a component file.

    Raises:
        ComponentNotFoundException: There is no component of the name.
        ComponentLoadError: Its file cannot be read.
    """
    return read_bytes(find(name).path).decode("utf-8-sig", "replace")


def builtins() -> tuple[Component, ...]:
    """List the components that come with this program."""
    return tuple(component for module in BUILTIN_MODULES for component in _builtins_of(module))


@cache
def _builtins_of(module: str) -> tuple[Component, ...]:
    path = Path(__file__).parent / f"{module}.py"
    return tuple(
        Component(f"{module}.{node.name}", "builtin", path, node.name, f"{__package__}.{module}")
        for node in read_source(path).components
    )


def plugins(failed: Report = lambda name, reason: None, *, private: bool = False) -> Iterator[Component]:
    """Yield the components of the entry points, except those with a builtin's name.

    Those of this environment come before those of the project in the current folder, where that has one of its own.

    Args:
        failed: called with an entry point without components, or a file of it that cannot be read, and the reason.
        private: include names that begin with an underscore; as in TorchX they can be found, but are not listed.
    """
    taken = {component.name for component in builtins()}
    yield from _components_of([None], taken, failed, private=private)
    yield from _components_of(_project(), taken, failed, private=private)


def _project() -> list[Interpreter]:
    interpreter = project_interpreter()
    return [] if interpreter is None else [interpreter]


def _components_of(
    interpreters: Sequence[Interpreter | None], taken: set[str], failed: Report, *, private: bool = False
) -> Iterator[Component]:
    """Yield the components of the packages of environments, but for names that are taken, which are added to these."""
    for interpreter in interpreters:
        for package in component_packages(interpreter, failed):
            for module, path in package.modules:
                parts = (package.prefix, *module.removeprefix(package.base).split("."))
                place = ".".join(filter(None, parts))
                for function in _component_names(place, path, failed, private=private):
                    name = f"{place}.{function}".lstrip(".")
                    if name not in taken:
                        taken.add(name)
                        yield Component(name, "plugin", path, function, module, interpreter)


def _component_names(name: str, path: Path, failed: Report, *, private: bool) -> list[str]:
    try:
        source = read_source(path)
        return [node.name for node in (source.all_components if private else source.components)]
    except ComponentLoadError as error:
        failed(name or path.stem, str(error))
        return []


def _find_registered(name: str) -> Component | None:
    module, _, function = name.rpartition(".")
    # Entry points are read only if the name is not a builtin.
    for component in chain(_builtins_of(module) if module in BUILTIN_MODULES else (), plugins(private=True)):
        if component.name == name:
            return component
    return _find_in_module(name, module, function) if module else None


def _find_in_module(name: str, module: str, function: str) -> Component | None:
    if path := module_path(module):
        return Component(name, "module", path, function, module)
    interpreter = project_interpreter()
    path = module_path_of(interpreter, module) if interpreter else None
    return Component(name, "module", path, function, module, interpreter) if path else None


def _find_in_file_or_module(name: str) -> Component | None:
    place, _, function = name.rpartition(":")
    path = Path(place).expanduser()
    if not is_missing(path) and not is_folder(path):
        return Component(name, "file", path.absolute(), function)
    if place.endswith(".py") or "/" in place:
        raise ComponentNotFoundException(f"{name}: there is no file {path.absolute()}")
    component = _find_in_module(name, place, function)
    if component is None:
        raise ComponentNotFoundException(f"{name}: there is no file and no module {place}")
    return component


def _describe_not_found(name: str, reason: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name.rpartition(":")[2] if ":" in name else name, known, n=3, cutoff=0.5)
    if ":" not in name and is_file(Path(name)):
        ways = f"utils.python --script {name}, or dist.ddp --script {name}"
        return f"{reason}, but a file of that name. To run it use {ways if name.endswith('.py') else f'./{name}'}"
    if close:
        return f"{reason}. Did you mean {' or '.join(close)}?"
    if ":" in name:
        return f"{reason}. Components there: {', '.join(known) or 'none'}"
    return f"{reason}. Use a builtin such as utils.echo, file.py:function, or package.module:function"


def list_components(folders: Sequence[Path] = ()) -> list[ComponentSummary]:
    """List the builtins, the components of installed packages, those of the Python files in folders, and scripts there.

    Unusable ones are listed with their error: a file that mentions AppDef but is not Python, a component that breaks a
    rule, an entry point without components, a folder that cannot be read.

    Args:
        folders: Folders to search, without those below them.
    """
    return list(chain.from_iterable(each_listed(folders)))


def each_listed(folders: Sequence[Path] = ()) -> Iterator[list[ComponentSummary]]:
    """Yield the list in parts: builtins, which take no time, packages, each file, then packages of the project."""
    yield [summary(component) for component in builtins()]
    taken = {component.name for component in builtins()}
    yield _list_packages([None], taken)
    seen: set[str] = set()
    for folder in folders:
        if (real := os.path.realpath(folder)) not in seen:
            seen.add(real)
            yield from _list_folder(folder)
    # The files of its environment take a second to read on a slow disk.
    yield _list_packages(_project(), taken)


def summary(component: Component) -> ComponentSummary:
    """Make the list entry of a component.

    Raises:
        ComponentLoadError: Its file is not Python.
        ComponentNotFoundException: Its file does not have it.
    """
    if component.kind == "script" and is_python_name(component.name):
        return ComponentSummary(component.name, "script", component.path, 1, _docstring_of(component.path))
    if component.kind == "script":
        doc = describe_batch_script(component.name)
        return ComponentSummary(component.name, "script", component.path, doc.line, doc.summary)
    node = component.definition
    faults = [fault for fault in lint_definition(component.source, node) if fault.severity == "error"]
    return ComponentSummary(
        name=component.name,
        kind=component.kind,
        path=component.path,
        line=faults[0].line if faults else node.lineno,
        summary=first_sentence(ast.get_docstring(node)),
        error=faults[0].description if faults else None,
        owner=owner_of(component.path) if component.kind == "file" else None,
    )


def component_key(name: str, folder: str | Path = "") -> str:
    """Make the name of a component that does not depend on the current folder: a file's gets its absolute path.

    Args:
        name: The name that it was found by.
        folder: The folder in which it was found; the current folder if empty.
    """
    place, colon, function = name.rpartition(":")
    if name.startswith(MODULE):
        return name
    if is_script_name(name):
        place, colon, function = name, "", ""
    elif not colon or not (place.endswith(".py") or "/" in place):
        return name
    path = Path(place).expanduser()
    try:
        return f"{os.path.normpath(Path(folder or Path.cwd()) / path)}{colon}{function}"
    except OSError:  # the current folder is gone
        return name


def name_here(key: str) -> str:
    """Convert a `component_key` to the name that a person would type in the current folder."""
    if key.startswith("/") and is_script_name(key):
        return _script_name(Path(key))
    place, colon, function = key.rpartition(":")
    return f"{shown_path(Path(place))}:{function}" if colon and place.startswith("/") else key


def _script_name(path: Path) -> str:
    shown = shown_path(path)
    return shown if is_script_name(shown) else f"./{shown}"


def listed_by_key(key: str) -> ComponentSummary:
    """Make the list entry of the component with a `component_key`.

    Raises:
        ComponentNotFoundException: It no longer exists.
    """
    name = name_here(key)
    try:
        return summary(find(name))
    except ComponentLoadError as error:
        return _unreadable(name, "file", Path(error.path), error)


def shown_path(path: Path) -> str:
    """Return a path as a person would type it in the current folder."""
    try:
        shown = str(path.absolute().relative_to(Path.cwd()))
        # Commands take a name that begins with a dash for an option.
        return f"./{shown}" if shown.startswith("-") else shown
    except (ValueError, OSError):
        return str(path)


def _list_packages(interpreters: Sequence[Interpreter | None], taken: set[str]) -> list[ComponentSummary]:
    failed: list[ComponentSummary] = []

    def note(name: str, reason: str) -> None:
        _log.warning("components of %s: %s", name, reason)
        failed.append(ComponentSummary(name, "plugin", Path(), 0, error=reason))

    return [*(summary(component) for component in _components_of(interpreters, taken, note)), *failed]


def _list_folder(folder: Path) -> Iterator[list[ComponentSummary]]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(SUFFIXES))
    except OSError as error:
        reason = f"the folder cannot be read ({error.strerror}): create it, or correct component_folders in config.toml"
        yield [ComponentSummary(str(folder), "file", folder, 0, error=reason, owner=owner_of(folder))]
        return
    for name in names:
        yield _list_file(folder / name)


def _list_file(path: Path) -> list[ComponentSummary]:
    is_python = path.suffix == ".py"
    name = shown_path(path) if is_python else _script_name(path)
    found: list[Component] = []
    try:
        # Larger files, of more than 1 MB, are generated.
        text = read_file(path)
        if is_python and b"AppDef" in text:
            nodes = read_source(path).components
            found += [Component(f"{name}:{node.name}", "file", path, node.name) for node in nodes]
        is_listed = script_docstring(text) is not None if is_python else path.suffix == SUFFIX
        # Other shell scripts are not listed.
        if is_listed or (not is_python and is_script(text.decode("utf-8-sig", "replace"))):
            found.append(Component(name, "script", path, ""))
        return list(map(summary, found))
    except OSError:
        return []
    except ComponentLoadError as error:
        return [_unreadable(name, "file" if is_python else "script", path, error)]


def _docstring_of(path: Path) -> str:
    try:
        return first_sentence(script_docstring(read_file(path)))
    except OSError:
        return ""


def _unreadable(name: str, kind: ComponentKind, path: Path, error: ComponentLoadError) -> ComponentSummary:
    owner = owner_of(path) if kind == "file" else None
    return ComponentSummary(name, kind, path, error.line or 0, error=error.reason, owner=owner)
