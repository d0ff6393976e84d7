"""Running a component's file, and turning whatever it raises into an error with file and line."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from ..specs import ArgumentError, ComponentLoadError
from ..specs.errors import described
from ..specs.files import SOURCE, read_file
from .finder import Component

# Files change sys.path and sys.modules while they run: one at a time.
_running = threading.RLock()


@contextmanager
def errors_located(path: Path) -> Iterator[None]:
    """Turn everything that the code inside raises, `SystemExit` and `KeyboardInterrupt` too, into ComponentLoadError.

    An ArgumentError passes, since it says which argument is wrong, and so does what is a ComponentLoadError already.

    Args:
        path: The component's file, whose line is wanted.
    """
    try:
        yield
    except (ArgumentError, ComponentLoadError):
        raise
    except BaseException as error:
        raise located(error, path) from error


def located(error: BaseException, path: Path) -> ComponentLoadError:
    """Return what a component raised as an error with the file and line where it happened.

    Args:
        error: What was raised.
        path: The component's file. Its innermost line in the traceback counts; else, of a syntax error in a file that
            it imports, that file's.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return ComponentLoadError(error.filename, error.lineno, f"syntax error: {error.msg}")
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return ComponentLoadError(str(path), lines[-1] if lines else None, _reason(error))


def _reason(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it called sys.exit({'' if error.code is None else repr(error.code)})"
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "torchx":
        return f"{described(error)}. Install TorchX beside torchx-tui, or import from torchx_tui.specs"
    return described(error)


@contextmanager
def loaded(component: Component) -> Iterator[Callable[..., Any]]:
    """Give a component's function, its module freshly run, with the imports of its folder possible meanwhile.

    Raises:
        ComponentLoadError: The module raised something, or has no such function once it is run.
    """
    with _running, errors_located(component.path):
        if component.module:
            yield _attribute(_module(component), component)
            return
        root, name = _place(component.path)
        sys.path.insert(0, str(root))
        try:
            yield _attribute(_run_file(component.path, name), component)
        finally:
            if str(root) in sys.path:
                sys.path.remove(str(root))


def _attribute(module: ModuleType, component: Component) -> Callable[..., Any]:
    function = getattr(module, component.function, None)
    if not callable(function):
        raise ComponentLoadError(str(component.path), None, f"{component.function} is gone once the file has run")
    return function


def _module(component: Component) -> ModuleType:
    """Return an importable module, run again where its file was edited since."""
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


def _place(path: Path) -> tuple[Path, str]:
    """Return the folder that imports start from, and the module's name from there; packages around it count."""
    names = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        names.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(names) or path.stem


def _run_file(path: Path, name: str) -> ModuleType:
    """Return a file as a module, compiled from its text: neither a cached module nor its bytecode is used."""
    package = name.rpartition(".")[0]
    if package:
        importlib.import_module(package)
    else:
        # A file named like an installed module must not take its place.
        name = f"_torchx_tui_component_{name}"
    spec: ModuleSpec | None = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise ComponentLoadError(str(path), None, "its name does not end in .py")
    module = importlib.util.module_from_spec(spec)
    linecache.checkcache(str(path))
    before = sys.modules.get(name)
    # dataclasses and pickle look their module up there.
    sys.modules[name] = module
    try:
        exec(compile(read_file(path, SOURCE), str(path), "exec"), module.__dict__)  # noqa: S102 - that is what a launch is
    except BaseException:
        sys.modules.pop(name, None)
        if before is not None:
            sys.modules[name] = before
        raise
    return module
