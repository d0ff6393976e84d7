"""An AppDef from a component and the texts of its arguments: the one place where a component is run."""

from __future__ import annotations

import enum
import importlib
import importlib.util
import inspect
import linecache
import sys
import threading
import traceback
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from ..specs import (
    AppDef,
    AppDefError,
    ArgumentError,
    BindMount,
    ComponentLoadError,
    DeviceMount,
    Mount,
    Resource,
    RetryPolicy,
    Role,
    VolumeMount,
    Workspace,
)
from ..specs.errors import describe_error
from ..specs.files import SOURCE, read_file
from .finder import Component, describe, find
from .model import ComponentDoc, Parameter, ValueType
from .values import parse_value

# Files change sys.path and sys.modules while they run, so they run one at a time.
_run_lock = threading.RLock()
_MOUNT_TYPES: dict[str, type[Mount]] = {"BindMount": BindMount, "VolumeMount": VolumeMount, "DeviceMount": DeviceMount}
# The fields that are converted, not copied.
_CONVERTED_FIELDS = ("retry_policy", "resource", "mounts", "workspace", "overrides")


def build_app(name: str, arguments: Mapping[str, str | Sequence[str]]) -> AppDef:
    """Run a component with arguments and return its AppDef.

    Args:
        name: The component.
        arguments: Texts by parameter, as `parse_value` parses them; a missing one has its default.

    Raises:
        ArgumentError: An argument is unknown, missing, or not a value of its type.
        ComponentLoadError: The component raised an error, or returned no AppDef; the message has file and line.
        TorchXTuiError: As for `describe`.
    """
    doc = describe(name)
    values = _parse_arguments(doc, arguments)
    component = find(name)
    with load_function(component) as function:
        app = _call(function, doc, values, component)
        with locate_errors(component.path):
            try:
                return to_own_appdef(app)
            except AppDefError as error:
                raise ComponentLoadError(str(component.path), doc.line, str(error)) from error


@contextmanager
def load_function(component: Component) -> Iterator[Callable[..., Any]]:
    """Yield a component's function from its freshly run module; meanwhile it can import from its folder.

    Raises:
        ComponentLoadError: The module raised an error, or has no such function after it ran.
    """
    with _run_lock, locate_errors(component.path):
        if component.module:
            yield _find_function(_import_module(component), component)
            return
        root, name = _import_root_and_name(component.path)
        sys.path.insert(0, str(root))
        try:
            yield _find_function(_run_file(component.path, name), component)
        finally:
            if str(root) in sys.path:
                sys.path.remove(str(root))


@contextmanager
def locate_errors(path: Path) -> Iterator[None]:
    """Convert everything that the code inside raises, `SystemExit` and `KeyboardInterrupt` too, to ComponentLoadError.

    An ArgumentError passes, since it says which argument is wrong, and so does a ComponentLoadError.

    Args:
        path: The component's file.
    """
    try:
        yield
    except (ArgumentError, ComponentLoadError):
        raise
    except BaseException as error:
        raise to_located_error(error, path) from error


def to_located_error(error: BaseException, path: Path) -> ComponentLoadError:
    """Convert what a component raised to an error with the file and line where it was raised.

    Args:
        error: What was raised.
        path: The component's file. Its innermost line in the traceback counts; else, of a syntax error in a file that
            it imports, that file's.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return ComponentLoadError(error.filename, error.lineno, f"syntax error: {error.msg}")
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return ComponentLoadError(str(path), lines[-1] if lines else None, _reason(error))


def to_own_appdef(app: Any) -> AppDef:
    """Convert what a component returned to an AppDef of ours.

    Args:
        app: An AppDef of ours, or one of any version of TorchX, which is told by its class's name.

    Raises:
        AppDefError: It is neither.
    """
    if isinstance(app, AppDef):
        return app
    if type(app).__name__ != "AppDef" or not hasattr(app, "roles"):
        raise AppDefError(f"a component returns AppDef, this one returned {type(app).__name__}")
    return AppDef(name=app.name, roles=[_to_own_role(role) for role in app.roles], metadata=dict(app.metadata))


def _parse_arguments(doc: ComponentDoc, arguments: Mapping[str, str | Sequence[str]]) -> dict[str, Any]:
    unknown = [name for name in arguments if doc.parameter(name) is None]
    if unknown:
        valid = ", ".join(parameter.name for parameter in doc.parameters) or "it has none"
        raise ArgumentError(unknown[0], f"{doc.name} has no such argument. Valid arguments: {valid}")
    missing = [parameter.name for parameter in doc.parameters if parameter.required and parameter.name not in arguments]
    if missing:
        raise ArgumentError(missing[0], f"{doc.name} needs a value for {', '.join(missing)}")
    given = [parameter for parameter in doc.parameters if parameter.name in arguments]
    return {parameter.name: parse_value(parameter, arguments[parameter.name]) for parameter in given}


def _call(function: Callable[..., Any], doc: ComponentDoc, values: dict[str, Any], component: Component) -> Any:
    rest: Sequence[Any] = ()
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    types = _type_hints(function)
    for parameter in doc.parameters:
        if parameter.name not in values:
            continue
        value = _convert_own_class(parameter, values[parameter.name], types)
        if parameter.kind == "var_positional":
            rest = value
        else:
            keywords[parameter.name] = value
    for parameter in inspect.signature(function).parameters.values():
        # Parameters before `/` are positional only, and so are those before *args if that is given.
        if parameter.kind is not parameter.POSITIONAL_ONLY and not (
            rest and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ):
            break
        positional.append(keywords.pop(parameter.name, parameter.default))
    try:
        made = function(*positional, *rest, **keywords)
        return made.build() if inspect.isclass(function) else made
    except ValueError as error:
        # The builtins' own errors are about the arguments, wherever in our code they are raised.
        if component.kind == "builtin" and not isinstance(error, ArgumentError):
            raise ArgumentError("", str(error)) from error
        raise


def _type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function.__init__ if inspect.isclass(function) else function)
    except Exception:
        # Annotations may have names that exist for type checkers only.
        return {}


def _convert_own_class(parameter: Parameter, value: Any, types: Mapping[str, Any]) -> Any:
    """Convert a text to a class that only the loaded module knows: an Enum, or the target of an alias."""
    if parameter.type.kind != "other" or not isinstance(value, str):
        return value
    kind: Any = types.get(parameter.name)
    options = [option for option in typing.get_args(kind) if option is not type(None)]
    kind = options[0] if len(options) == 1 else kind
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _member(parameter, kind, value)
    if kind in (int, float, bool):
        return parse_value(replace(parameter, type=ValueType(kind.__name__, kind.__name__)), value)
    return value


def _member(parameter: Parameter, kind: type[enum.Enum], text: str) -> enum.Enum:
    for member in kind:
        if text in (member.name, str(member.value)):
            return member
    names = ", ".join(member.name for member in kind)
    raise ArgumentError(parameter.name, f"`{text}` is not valid. Want one of {names}")


def _reason(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it called sys.exit({'' if error.code is None else repr(error.code)})"
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "torchx":
        return f"{describe_error(error)}. Install TorchX beside torchx-tui, or import from torchx_tui.specs"
    return describe_error(error)


def _find_function(module: ModuleType, component: Component) -> Callable[..., Any]:
    function = getattr(module, component.function, None)
    if not callable(function):
        raise ComponentLoadError(str(component.path), None, f"{component.function} is gone once the file has run")
    return function


def _import_module(component: Component) -> ModuleType:
    """Import a module; run it again if its file was edited since."""
    before = sys.modules.get(component.module)
    stamp = component.path.stat().st_mtime_ns
    if before is None:
        module = importlib.import_module(component.module)
    elif getattr(before, "__torchx_tui_stamp__", stamp) != stamp:
        module = importlib.reload(before)
    else:
        module = before
    module.__dict__["__torchx_tui_stamp__"] = stamp
    return module


def _import_root_and_name(path: Path) -> tuple[Path, str]:
    """Return the folder that imports start from, and the module's name from there, with the packages around it."""
    names = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        names.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(names) or path.stem


def _run_file(path: Path, name: str) -> ModuleType:
    """Run a file as a module, compiled from its text: neither a cached module nor its bytecode is used."""
    package = name.rpartition(".")[0]
    if package:
        importlib.import_module(package)
    else:
        # A file with the name of an installed module must not replace that.
        name = f"_torchx_tui_component_{name}"
    spec: ModuleSpec | None = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise ComponentLoadError(str(path), None, "its name does not end in .py")
    module = importlib.util.module_from_spec(spec)
    linecache.checkcache(str(path))
    before = sys.modules.get(name)
    # dataclasses and pickle look up their module there.
    sys.modules[name] = module
    try:
        exec(compile(read_file(path, SOURCE), str(path), "exec"), module.__dict__)  # noqa: S102 - that is what a launch is
    except BaseException:
        sys.modules.pop(name, None)
        if before is not None:
            sys.modules[name] = before
        raise
    return module


def _to_own_role(foreign: Any) -> Role:
    names = [
        field.name for field in fields(Role) if field.name not in _CONVERTED_FIELDS and hasattr(foreign, field.name)
    ]
    role = Role(**{name: getattr(foreign, name) for name in names})
    role.retry_policy = RetryPolicy(getattr(foreign.retry_policy, "value", foreign.retry_policy))
    role.resource = _copy_fields(Resource, foreign.resource)
    role.mounts = [_to_own_mount(mount) for mount in getattr(foreign, "mounts", [])]
    workspace = getattr(foreign, "workspace", None)
    if workspace is not None:
        role.workspace = Workspace(dict(getattr(workspace, "projects", {})))
    return role


def _to_own_mount(foreign: Any) -> Mount:
    kind = _MOUNT_TYPES.get(type(foreign).__name__)
    if kind is None:
        raise AppDefError(f"a mount of the kind {type(foreign).__name__} is not known")
    return _copy_fields(kind, foreign)


def _copy_fields(kind: Any, foreign: Any) -> Any:
    return kind(**{field.name: getattr(foreign, field.name) for field in fields(kind) if hasattr(foreign, field.name)})
