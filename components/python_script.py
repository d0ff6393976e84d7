"""A user's own Python script as a component: its arguments, the variables of its environment, and how it is launched.

`train.py` and `-m package.module` are names of scripts. Only what differs from the script's own defaults is on its
command line, so that a changed default counts.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from cachetools import TTLCache, cached

from ..base.files import current_folder
from ..base.modules import SearchPath, module_path
from ..guest.interpreter import choose_job_interpreters
from ..guest.packages import module_path_of, project_interpreter
from ..guest.settings import guest_settings
from ..logs.text.sanitize import plain
from ..specs.errors import ArgumentError, ComponentLoadError, ComponentNotFoundException
from ..specs.roles import AppDef
from .docstrings import read_docstring
from .image import DEFAULT_IMAGE
from .model import ComponentDoc, LinterMessage, Parameter, ValueType
from .script_arguments import ScriptArgument, command_words
from .script_source import ScriptSource, read_script_source
from .source import existing_file
from .values import Texts, parameters_by_name, parse_value, to_text

SUFFIX = ".py"
MODULE = "-m "
"""The start of the name of a module that is run as a script."""
REST = "args"
PYTHON, TORCHRUN = "python", "torchrun"
_CACHE_S = 2.0
PREFIX = "job_"
"""Put before the name of a launch field if the script has an argument of that name."""


def _launch(
    name: str, kind: str, default: Any, help: str, choices: tuple[str, ...] = (), form: str = "", launcher: str = ""
) -> Parameter:
    made = ValueType(kind, kind, optional=default is None, choices=choices)
    only_with = ("launcher", (launcher,)) if launcher else ("", ())
    return Parameter(name, "keyword_only", made, default, help, form, part="launch", only_with=only_with)


LAUNCH = (
    _launch("launcher", "str", PYTHON, "The program that starts the script.", (PYTHON, TORCHRUN)),
    _launch("nproc_per_node", "int", 1, "Processes on each node.", launcher=TORCHRUN),
    _launch("nnodes", "int", 1, "Nodes.", launcher=TORCHRUN),
    _launch("num_replicas", "int", 1, "Copies of the script.", launcher=PYTHON),
    _launch("cpu", "int", 1, "CPU cores of each replica."),
    _launch("gpu", "int", 0, "GPUs of each replica."),
    _launch("memMB", "int", 1024, "Memory of each replica, in MB."),
    _launch("h", "str", None, "A named resource, which wins over cpu, gpu and memMB.", form="resource"),
    _launch("image", "str", DEFAULT_IMAGE, "The container image, where there are containers."),
)
"""The fields of a launch, before the names that a script takes are changed."""


class _Place(NamedTuple):
    """A script: its file, and the file or module that a command names."""

    path: Path
    script: str | None
    module: str | None


def is_python_name(name: str) -> bool:
    """Return whether a name is that of a Python script: ``train.py``, ``-m package.module``."""
    return ":" not in name and (name.endswith(SUFFIX) or name.startswith(MODULE))


def python_path(name: str) -> Path:
    """Return the file of a script.

    Raises:
        ComponentNotFoundException: There is none.
    """
    return _place(name).path


def _place(name: str) -> _Place:
    if name.startswith(MODULE):
        module = name.removeprefix(MODULE).strip()
        path = _module_file(module)
        if path is None:
            raise ComponentNotFoundException(
                f"{name}: there is no module {module} here or in the project's environment"
            )
        return _Place(path, None, module)
    script = Path(name).expanduser()
    path = existing_file(name)
    # Python and torchrun take a name that begins with a dash for an option.
    return _Place(path, f"./{script}" if str(script).startswith("-") else str(script), None)


def _module_file(module: str) -> Path | None:
    """Return the file that `python -m` runs for a module: of the current folder, else of the project's environment."""
    folder = current_folder()
    here = SearchPath((str(folder),) if folder else ())
    interpreter = project_interpreter()
    names = (f"{module}.__main__", module)
    found = (module_path(name, here) or (module_path_of(interpreter, name) if interpreter else None) for name in names)
    return next(filter(None, found), None)


def read_python(name: str) -> tuple[Path, ScriptSource]:
    """Return the file of a script, and what is read in it.

    Raises:
        ComponentNotFoundException: There is no such file.
        ComponentLoadError: It cannot be read.
    """
    place = _place(name)
    path = place.path
    try:
        status = path.stat()
        return path, _read(path, place.module or "", status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise ComponentLoadError(str(path), None, error.strerror or str(error)) from error


# One launch asks for it several times. It does not stay, since Hydra's files may change while the script does not.
@cached(TTLCache(8, _CACHE_S), lock=threading.Lock())
def _read(path: Path, module: str, changed: int, size: int) -> ScriptSource:
    return read_script_source(path, module, partial(_installed_module, path))


def _installed_module(script: Path, name: str) -> Path | None:
    """Find the file of a module in the environment that the script runs in on this machine."""
    interpreter = next(iter(choose_job_interpreters(script, guest_settings().python)), None)
    return module_path_of(interpreter, name) if interpreter else None


def describe_python(name: str) -> ComponentDoc:
    """Return the description of a script. Raises as `read_python` does."""
    path, source = read_python(name)
    docstring = read_docstring(source.docstring)
    return ComponentDoc(
        name=name,
        kind="script",
        summary=docstring.summary,
        description=docstring.description,
        parameters=[*_parameters(source.arguments)],
        path=path,
        line=1,
        module=name.removeprefix(MODULE) if name.startswith(MODULE) else "",
        findings=tuple(_findings(path, source)),
    )


def _parameters(arguments: Sequence[ScriptArgument]) -> Iterator[Parameter]:
    command = next((argument.name for argument in arguments if argument.style == "command"), "")
    for argument in arguments:
        if argument.commands:
            help = f"{argument.help} (only {', '.join(argument.commands)})".strip()
            argument = replace(argument, help=help, only_with=(command, argument.commands))
        yield argument
    for field in LAUNCH:
        other, values = field.only_with
        only_with = (_free(other, arguments) if other else "", values)
        yield replace(field, name=_free(field.name, arguments), only_with=only_with)
    help = "Further arguments, passed to the script as they are" if arguments else "The script's arguments"
    yield Parameter(_free(REST, arguments), "var_positional", ValueType("str", "str"), (), help)


def _free(name: str, arguments: Sequence[ScriptArgument]) -> str:
    """Return the name of a launch field: with a prefix if the script has an argument of that name."""
    taken = {argument.name for argument in arguments}
    while name in taken:
        name = f"{PREFIX}{name}"
    return name


def _findings(path: Path, source: ScriptSource) -> Iterator[LinterMessage]:
    rest = _free(REST, source.arguments)
    for line, reason in source.notes:
        yield LinterMessage("script", f"not read: {plain(reason)}; give such arguments in {rest}", line, 0, "warning")
    if not source.notes and not any(argument.style != "variable" for argument in source.arguments):
        words = f"no arguments are found in {path.name}; if it takes any, give them in {rest}"
        yield LinterMessage("script", words, 0, 0, "warning")


def build_python(name: str, arguments: Texts) -> AppDef:
    """Return the AppDef that runs a script.

    Args:
        name: The script.
        arguments: Texts by parameter.

    Raises:
        ArgumentError: An argument is unknown, missing, or not a value of its type.
        TorchXTuiError: As for `read_python`.
    """
    _, source = read_python(name)
    parameters = parameters_by_name(name, _parameters(source.arguments), arguments)
    rest_name = _free(REST, source.arguments)
    rest = parse_value(parameters[rest_name], arguments[rest_name]) if rest_name in arguments else ()
    texts = {key: text if isinstance(text, str) else to_text(text) for key, text in arguments.items()}
    words = command_words(source.arguments, texts, rest)
    app = _run(name, words, _launch_values(source.arguments, parameters, texts))
    for role in app.roles:
        role.name = app.name
        role.env |= {
            item.name: texts[item.name]
            for item in source.arguments
            if item.style == "variable" and item.name in texts and item.is_changed(texts[item.name])
        }
    return app


def _launch_values(
    arguments: Sequence[ScriptArgument], parameters: Mapping[str, Parameter], texts: Mapping[str, str]
) -> dict[str, Any]:
    """Return the values of the fields of the launch. Raises ArgumentError."""
    values: dict[str, Any] = {}
    for field in LAUNCH:
        name = _free(field.name, arguments)
        values[field.name] = parse_value(parameters[name], texts[name]) if name in texts else field.default
        needed, launchers = parameters[name].only_with
        if launchers and values["launcher"] not in launchers and values[field.name] != field.default:
            raise ArgumentError(name, f"only {launchers[0]} uses it: set {needed} to {launchers[0]}")
        if launchers and values[field.name] < 1:
            raise ArgumentError(name, f"use 1 or more, not {values[field.name]}")
    return values


def _run(name: str, words: Sequence[str], values: Mapping[str, Any]) -> AppDef:
    from . import dist, utils

    place = _place(name)
    common = {key: values[key] for key in ("cpu", "gpu", "memMB", "image")}
    common |= {"script": place.script, "m": place.module, "name": _job_name(place), "h": values["h"] or None}
    if values["h"]:
        from ..guest.resources import load_named_resources

        load_named_resources()
    if values["launcher"] == TORCHRUN:
        return dist.torchrun(*words, **common, j=f"{values['nnodes']}x{values['nproc_per_node']}")
    return utils.python(*words, **common, num_replicas=values["num_replicas"])


def _job_name(place: _Place) -> str:
    stem = place.module.rpartition(".")[2] if place.module else place.path.stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip(".-_") or "script"
