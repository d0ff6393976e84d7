"""Build an AppDef from a component and the texts of its arguments: builtins here, all others in a worker."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import describe_error
from ..base.files import is_file
from ..base.trust import check_owner
from ..base.validation import JsonObject
from ..guest.plain import call_component
from ..guest.resources import load_named_resources
from ..guest.settings import guest_settings
from ..logs.text.sanitize import plain
from ..specs.errors import AppDefError, ArgumentError, ComponentLoadError
from ..specs.roles import AppDef
from ..specs.serialize import appdef_from_dict
from .finder import Component, describe, find
from .model import ComponentDoc
from .python_script import build_python, is_python_name
from .sbatch import build_batch_script
from .sbatch_script import is_batch_name
from .values import Texts, parameters_by_name, parse_value

if TYPE_CHECKING:
    from ..guest.interpreter import Interpreter
    from ..guest.worker import Tick

_MAX_PRINTED = 200  # characters of the last line printed


def build_app(
    name: str,
    arguments: Texts,
    check: Tick = lambda: None,
    report: Callable[[str], object] = lambda text: None,
) -> AppDef:
    """Run a component with arguments and return its AppDef.

    Args:
        name: The component.
        arguments: Texts by parameter, as `parse_value` parses them; a missing argument has its default.
        check: Called every 0.1 s while the component runs; ends it by raising.
        report: Called with a sentence when the component is slow.

    Raises:
        ArgumentError: An argument is unknown, missing, or not a value of its type.
        ComponentLoadError: The component raised an error, hung, ended its process, or returned no AppDef; the message
            has file and line where they are known.
        UntrustedError: Its file, or the folder or repository of that, belongs to another user and is not trusted.
        TorchXTuiError: As for `describe`.
    """
    if is_python_name(name):
        return build_python(name, arguments)
    if is_batch_name(name):
        return build_batch_script(name, arguments)
    doc = describe(name)
    values = parse_arguments(doc, arguments)
    rest = next((values.pop(item.name, ()) for item in doc.parameters if item.kind == "var_positional"), ())
    component = find(name)
    if component.kind == "builtin":
        return _run_builtin(component, rest, values)
    check_trusted(component)
    texts = [item.name for item in doc.parameters if item.type.kind == "other" and item.name in values]
    given = {"rest": rest, "values": {key: _encode_argument(value) for key, value in values.items()}, "texts": texts}
    return _build_in_worker(component, doc.line, given, check, report)


def check_trusted(component: Component) -> None:
    """Raise UntrustedError if a component's file belongs to another user and is not trusted."""
    if component.kind == "file":
        check_owner(component.path)


def interpreter_of(component: Component) -> Interpreter | None:
    """Choose the interpreter that runs a component; None for a builtin, and for a script, which is only read."""
    if component.kind in ("builtin", "script"):
        return None
    from ..guest.interpreter import choose_interpreter

    chosen = component.interpreter
    return chosen or choose_interpreter(None if component.module else component.path, guest_settings().python)


def parse_arguments(doc: ComponentDoc, arguments: Texts) -> dict[str, Any]:
    """Parse the texts of a component's arguments. Raises ArgumentError."""
    known = parameters_by_name(doc.name, doc.parameters, arguments)
    missing = [name for name, parameter in known.items() if parameter.required and name not in arguments]
    if missing:
        raise ArgumentError(missing[0], f"{doc.name} needs a value for {', '.join(missing)}")
    return {name: parse_value(known[name], arguments[name]) for name in known if name in arguments}


def _run_builtin(component: Component, rest: Sequence[Any], values: dict[str, Any]) -> AppDef:
    function = getattr(importlib.import_module(component.module), component.function)
    if any(item.form == "resource" and values.get(item.name, item.default) for item in component.parameters):
        load_named_resources()
    try:
        return call_component(function, rest, values)
    except ArgumentError:
        raise
    except ValueError as error:
        # The builtins' own errors are about the arguments, wherever in our code they are raised.
        raise ArgumentError("", str(error)) from error
    except Exception as error:
        raise ComponentLoadError(str(component.path), None, describe_error(error)) from error


def _build_in_worker(
    component: Component,
    line: int,
    given: JsonObject,
    check: Tick,
    report: Callable[[str], object],
) -> AppDef:
    # Builtins, which most launches are, need none of it.
    from ..guest.pool import pool
    from ..guest.worker import RemoteError, WorkerError

    path, installed = str(component.path), bool(component.module)
    root, module = _import_root_and_name(component)
    described = {
        "path": path, "function": component.function, "module": module, "root": root, "installed": installed,
    }  # fmt: skip
    interpreter = interpreter_of(component)
    assert interpreter is not None
    tick = _reporting_slowness(check, report)
    try:
        return appdef_from_dict(pool.build(interpreter, described, given, tick))
    except RemoteError as raised:
        raise _component_error(raised.error, raised.output, path, line) from raised
    except WorkerError as error:
        raise ComponentLoadError(path, error.line, _with_output(error.reason, error.output)) from error
    except AppDefError as error:
        raise ComponentLoadError(path, line, str(error)) from error


def _reporting_slowness(check: Tick, report: Callable[[str], object]) -> Tick:
    slow_s = guest_settings().slow_s
    slow_at = time.monotonic() + slow_s

    def tick() -> None:
        nonlocal slow_at
        check()
        if time.monotonic() >= slow_at:
            slow_at = float("inf")
            report(f"no answer for {slow_s:g} s, still waiting")

    return tick


def _encode_argument(value: Any) -> Any:
    """Encode what `parse_value` returns, as `specs.serialize` does, and numbers that are not finite as Python does."""
    if isinstance(value, tuple):
        return {"$tuple": list(value)}
    if isinstance(value, dict):
        return {"$items": list(value.items())}
    return value


def _component_error(error: JsonObject, output: str, path: str, line: int) -> Exception:
    reason = str(error.get("reason"))
    if error.get("kind") == "argument":
        return ArgumentError(str(error.get("name")), reason)
    at = error.get("line")
    if not isinstance(at, int):
        at = line if error.get("kind") == "app" else None
    return ComponentLoadError(str(error.get("path", path)), at, _with_output(reason, output))


def _with_output(reason: str, output: str) -> str:
    """Add the last line that was printed, which often says more."""
    lines = [text for line in output.splitlines() if (text := plain(line).strip())]
    return f"{reason}. It printed last: {lines[-1][:_MAX_PRINTED]}" if lines else reason


def _import_root_and_name(component: Component) -> tuple[str, str]:
    """Return the folder that imports start from, and the module's name from there, with the packages around it."""
    path: Path = component.path
    if component.module:
        depth = component.module.count(".") + (path.name == "__init__.py")
        return str(path.parents[depth]), component.module
    names = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    while is_file(folder / "__init__.py") and folder.name.isidentifier():
        names.insert(0, folder.name)
        folder = folder.parent
    return str(folder), ".".join(names) or path.stem
