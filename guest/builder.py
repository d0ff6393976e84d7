"""Builds components and named resources, in the process of a worker.

The call `build` gives ``{"app": ..., "files": [[PATH, MTIME_NS], ...], "loaded": true}``: the AppDef, and the files of
the project that were imported. Its error has `files` too, and `loaded`, false if the component's own file failed.
"""

from __future__ import annotations

import contextlib
import enum
import faulthandler
import importlib
import importlib.util
import inspect
import os
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

from ..base.errors import TorchXTuiError, describe_error
from ..base.files import current_folder, modified_ns
from ..base.validation import JsonObject
from ..specs.errors import AppDefError, ArgumentError, ComponentLoadError
from ..specs.serialize import decode_value
from .framing import receive, send
from .plain import call_component, plain_app
from .torchx_modules import NOT_INSTALLED


def serve(channel: int, idle_s: float | None) -> None:
    """Answer the calls of a worker until it closes or is idle."""
    folder, environment = current_folder(), dict(os.environ)
    for request in receive(channel, idle_s):
        # Undo what the last component changed.
        os.environ.clear()
        os.environ.update(environment)
        if folder is not None:
            os.chdir(folder)
        send(channel, {"id": request["id"], **_CALLS[request["call"]](*request["arguments"])})


def _make_resources() -> JsonObject:
    from .resources import make_resources

    return {"value": make_resources()}


def _build(component: JsonObject, given: JsonObject, timeout_s: float) -> JsonObject:
    answer: JsonObject = {"loaded": False}
    try:
        faulthandler.dump_traceback_later(timeout_s, exit=True, file=2)  # type: ignore[arg-type]
        function = _load(component)
        answer["loaded"] = True
        answer["app"] = plain_app(call_component(function, given["rest"], _keywords(function, given)))
    except BaseException as error:
        answer |= _describe(error, component["path"])
        if isinstance(error, MemoryError) and not isinstance(error, TorchXTuiError):
            answer["loaded"] = False
    finally:
        faulthandler.cancel_dump_traceback_later()
        for stream in (sys.stdout, sys.stderr):
            # A component may have put anything there.
            with contextlib.suppress(Exception):
                stream.flush()
    answer["files"] = _project_files(component["path"])
    return {"value" if "app" in answer else "error": answer}


_CALLS = {"build": _build, "make_resources": _make_resources}


def _keywords(function: Callable[..., Any], given: JsonObject) -> JsonObject:
    """Decode the values by name."""
    hints = _type_hints(function)
    keywords = {name: decode_value(value) for name, value in given["values"].items()}
    return keywords | {name: _of_own_class(name, hints.get(name), keywords[name]) for name in given["texts"]}


def _type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function.__init__ if inspect.isclass(function) else function)  # type: ignore[misc]
    except Exception:
        # Annotations may have names that exist for type checkers only.
        return {}


def _of_own_class(name: str, kind: Any, value: Any) -> Any:
    """Convert a text to a type that only the loaded module has: an Enum, or the target of an alias."""
    options = [option for option in typing.get_args(kind) if option is not type(None)]
    kind = options[0] if len(options) == 1 else kind
    if not isinstance(value, str) or not isinstance(kind, type):
        return value
    if issubclass(kind, enum.Enum):
        for member in kind:
            if value in (member.name, str(member.value)):
                return member
        names = ", ".join(member.name for member in kind)
        raise ArgumentError(name, f"`{value}` is not valid. Use one of {names}")
    if kind in (int, float, bool):
        from ..specs.run_options import parse_scalar

        try:
            return parse_scalar(kind.__name__, value)
        except ValueError as error:
            raise ArgumentError(name, str(error)) from error
    return value


def _describe(error: BaseException, path: str) -> JsonObject:
    """Convert an error to plain data: its kind, file, line and reason."""
    import traceback

    if isinstance(error, ArgumentError):
        return {"kind": "argument", "name": error.parameter, "reason": error.reason}
    if isinstance(error, SyntaxError) and error.filename:
        return {"path": error.filename, "line": error.lineno, "reason": f"syntax error: {error.msg}"}
    # The innermost line of the component's file.
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    if isinstance(error, SystemExit):
        reason = f"it called sys.exit({'' if error.code is None else repr(error.code)})"
    elif isinstance(error, MemoryError):
        reason = "it needs more memory than a component may have: raise memory_gigabytes of [components] in config.toml"
    elif isinstance(error, AppDefError) and not lines:
        return {"kind": "app", "path": path, "reason": str(error)}
    else:
        reason = describe_error(error)
        is_torchx = isinstance(error, ImportError) and (error.name or "").partition(".")[0] == "torchx"
        if is_torchx and NOT_INSTALLED not in reason:
            reason += f". {NOT_INSTALLED} {sys.executable}"
    return {"path": path, "line": lines[-1] if lines else None, "reason": reason}


# Modules

_loaded: dict[str, types.ModuleType] = {}


def _load(component: JsonObject) -> Callable[..., Any]:
    """Return a component's function; run its module at the first call.

    `pool` starts a new process when a file changes, so no module is run twice.
    """
    path, name, root = component["path"], component["module"], component["root"]
    module = _loaded.get(path)
    if module is None:
        if root not in sys.path:
            # A file is imported from its own folder first; what is installed comes before a module's folder.
            sys.path.insert(len(sys.path) if component["installed"] else 0, root)
        module = _loaded[path] = importlib.import_module(name) if component["installed"] else _run_file(path, name)
    function = getattr(module, component["function"], None)
    if not callable(function):
        raise ComponentLoadError(path, None, f"{component['function']} is gone once the file has run")
    return function


def _run_file(path: str, name: str) -> types.ModuleType:
    package = name.rpartition(".")[0]
    if package:
        importlib.import_module(package)
    else:
        # A file with the name of an installed module must not replace that.
        name = f"_torchx_tui_component_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path}: its name does not end in .py")
    module = importlib.util.module_from_spec(spec)
    # dataclasses and pickle look up their module there.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _project_files(path: str) -> list[tuple[str, int]]:
    """Return the component's file and all imported files that are not installed, with their modification times (ns)."""
    installed = tuple(folder + os.sep for folder in (sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)))
    imported = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    files = {
        file
        for file in imported
        if isinstance(file, str) and not file.startswith(installed) and "site-packages" not in file
    }
    return [(file, modified_ns(file)) for file in {path, *files}]
