"""The program of a guest: runs components in the interpreter of their project and answers over pipes.

`host.py` starts it by path; nothing of torchx-tui has to be installed for the interpreter. There are two processes.
The first waits until the second ends, or until the host does, whose end of a pipe is closed then even if it is killed;
then it kills everything that is left. The second runs the code.

Requests and answers are JSON, one a line, over descriptors of their own. The first answer is
``{"hello": {"protocol": 1, "version": [3, 11, 7], "process": 4711}}``. A request is
``{"component": {...}, "values": {...}, "timeout": 9.5}``; its answer has ``app`` or ``error``, ``files`` that were
imported with the times of their changes, and ``loaded``, false where the file itself failed. ``{"resources": true}``
asks for all named resources of others, ``{"packages": true}`` and ``{"module": NAME}`` for where components are
installed, ``{"inspect": true}`` for the version of TorchX; an empty line keeps the guest
from ending as idle. The last is
``{"ended": WAIT STATUS}``. `components/build.py` makes requests and reads answers. A guest that is a service answers
as the module that its settings name does.
"""

from __future__ import annotations

import contextlib
import enum
import fcntl
import importlib
import importlib.machinery
import importlib.util
import inspect
import json
import os
import resource
import select
import signal
import sys
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

PROTOCOL = 1
# Descriptors of ours stand above those that a program usually has.
_LOWEST_DESCRIPTOR = 200
_SIGNALS = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGTSTP", "SIGTTIN", "SIGTTOU")
_PR_SET_CHILD_SUBREAPER = 36
# Modules of TorchX, by where their names are here. Parts of `torchx_tui.`.
_TORCHX_MODULES = {
    "torchx": "",
    "torchx.components": "components",
    "torchx.components.dist": "components.dist",
    "torchx.components.structured_arg": "components.structured_arg",
    "torchx.components.utils": "components.utils",
    "torchx.runner": "backends.runner",
    "torchx.runner.api": "backends.runner",
    "torchx.schedulers": "backends.registry",
    "torchx.schedulers.api": "backends.api",
    "torchx.schedulers.ids": "specs",
    "torchx.specs": "specs",
    "torchx.specs.api": "specs",
    "torchx.specs.file_linter": "components",
    "torchx.specs.finder": "components",
    "torchx.specs.named_resources_aws": "specs.named_resources_aws",
    "torchx.specs.named_resources_generic": "specs.named_resources_generic",
    "torchx.specs.serialize": "specs.serialize",
    "torchx.version": "components.image",
    "torchx.workspace": "backends.workspace",
    "torchx.workspace.api": "backends.workspace",
}


def main() -> None:
    """Run both processes, as the settings in the first argument say."""
    settings = json.loads(sys.argv[1])
    requests, answers, life = (_above(settings[name]) for name in ("requests", "answers", "life"))
    # What is imported is the project's, not what stands beside this file.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    child = os.fork()
    if child:
        _watch(child, life, answers, woken, wake, adopt=not settings.get("service"))
    else:
        for descriptor in (life, woken, wake):
            os.close(descriptor)
        os.setpgid(0, 0)
        _serve(settings, requests, answers)
    os._exit(0)


def _above(descriptor: int) -> int:
    """Move a descriptor above the usual ones; programs that a component starts do not inherit it."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _LOWEST_DESCRIPTOR)
    os.close(descriptor)
    return moved


def _write(descriptor: int, answer: dict[str, Any]) -> None:
    data = (json.dumps(answer) + "\n").encode()
    while data:
        data = data[os.write(descriptor, data) :]


# The first process


def _watch(child: int, life: int, answers: int, woken: int, wake: int, *, adopt: bool) -> None:
    for name in _SIGNALS:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    if adopt:
        # A plugin's jobs may be processes of this machine, in sessions of their own: those go on.
        _become_subreaper()
    status = _reap(child)
    while status is None:
        ready, _, _ = select.select([life, woken], [], [])
        if life in ready:
            break
        os.read(woken, 4096)
        status = _reap(child)
    if status is not None:
        _write(answers, {"ended": status})
    _kill_all(child)


def _become_subreaper() -> None:
    """Become the parent of all that descendants leave behind, also in sessions of their own. Linux only."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _reap(child: int) -> int | None:
    """Reap what has ended; return the wait status of the second process if that has."""
    status = None
    while True:
        try:
            process, its_status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if not process:
            return status
        if process == child:
            status = its_status


def _kill_all(child: int) -> None:
    _kill(child, os.killpg)
    while True:
        for process in _children():
            _kill(process, os.kill)
        try:
            # Orphans of what is killed become children of this process.
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _kill(target: int, kill: Callable[[int, int], None]) -> None:
    with contextlib.suppress(OSError):
        kill(target, signal.SIGKILL)


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


# The second process


def _serve(settings: dict[str, Any], requests: int, answers: int) -> None:
    hello = {"protocol": PROTOCOL, "version": list(sys.version_info[:3]), "process": os.getpid()}
    _write(answers, {"hello": hello})
    if settings["memory"]:
        # Not the address space, of which libraries for GPUs reserve far more than they use.
        _limit_memory(settings["memory"])
    sys.dont_write_bytecode = True
    sys.meta_path.insert(0, _Ours(settings["root"]))
    sys.meta_path.append(_Libraries(settings["libraries"]))
    sys.meta_path.append(_TorchX())
    if settings.get("service"):
        sys.path[:] = settings["path"]
        importlib.import_module(settings["service"]).serve(requests, answers)
        return
    folder, environment = _current_folder(), dict(os.environ)
    # Imported while nobody waits for it.
    importlib.import_module("torchx_tui.specs.serialize")
    waiting = b""
    while True:
        line, newline, rest = waiting.partition(b"\n")
        if newline:
            waiting = rest
            if not line:
                # The host says only that it goes on.
                continue
            if dict(os.environ) != environment:
                os.environ.clear()
                os.environ.update(environment)
            if folder:
                os.chdir(folder)
            request = json.loads(line)
            if "inspect" in request:
                _write(answers, _inspect())
            elif "resources" in request:
                _write(answers, importlib.import_module("torchx_tui.guest.resources").make_resources())
            elif "packages" in request:
                _write(answers, importlib.import_module("torchx_tui.guest.packages").describe_packages())
            elif "module" in request:
                _write(answers, importlib.import_module("torchx_tui.guest.packages").describe_module(request["module"]))
            else:
                _write(answers, _answer(request))
        elif not select.select([requests], [], [], settings["idle"])[0]:
            return
        else:
            data = os.read(requests, 1 << 16)
            if not data:
                return
            waiting += data


def _limit_memory(size: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    if most == resource.RLIM_INFINITY or size < most:
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _inspect() -> dict[str, Any]:
    from importlib.metadata import PackageNotFoundError, version

    for distribution in ("torchx", "torchx-nightly"):
        with contextlib.suppress(PackageNotFoundError):
            return {"loaded": True, "torchx": version(distribution)}
    return {"loaded": True, "torchx": ""}


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    import faulthandler

    from torchx_tui.specs import TorchXTuiError

    answer: dict[str, Any] = {"loaded": False}
    try:
        faulthandler.dump_traceback_later(request["timeout"], exit=True, file=2)  # type: ignore[arg-type]
        function = _load(request["component"])
        answer["loaded"] = True
        answer["app"] = _build(function, request)
    except BaseException as error:
        answer["error"] = _describe(error, request["component"]["path"])
        if isinstance(error, MemoryError) and not isinstance(error, TorchXTuiError):
            answer["loaded"] = False
    finally:
        faulthandler.cancel_dump_traceback_later()
        for stream in (sys.stdout, sys.stderr):
            # A component may have put anything there.
            with contextlib.suppress(Exception):
                stream.flush()
    answer["files"] = list(_project_files(request["component"]["path"]))
    return answer


def _build(function: Callable[..., Any], request: dict[str, Any]) -> dict[str, Any]:
    from torchx_tui.guest.plain import call_component, plain_app

    return plain_app(call_component(function, *_arguments(function, request["values"])))


def _arguments(function: Callable[..., Any], values: list[dict[str, Any]]) -> tuple[Sequence[Any], dict[str, Any]]:
    """Decode the values; return those of ``*args`` and the others by name."""
    from torchx_tui.specs.serialize import decode_value

    hints = _type_hints(function)
    rest: Sequence[Any] = ()
    keywords: dict[str, Any] = {}
    for item in values:
        value = decode_value(item["value"])
        if item["rest"]:
            rest = value
        else:
            name = item["name"]
            keywords[name] = _of_own_class(name, hints.get(name), value) if item["text"] else value
    return rest, keywords


def _type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function.__init__ if inspect.isclass(function) else function)  # type: ignore[misc]
    except Exception:
        # Annotations may have names that exist for type checkers only.
        return {}


def _of_own_class(name: str, kind: Any, value: Any) -> Any:
    """Convert a text to a class that only the loaded module knows: an Enum, or the target of an alias."""
    options = [option for option in typing.get_args(kind) if option is not type(None)]
    kind = options[0] if len(options) == 1 else kind
    if not isinstance(value, str) or not isinstance(kind, type):
        return value
    if issubclass(kind, enum.Enum):
        for member in kind:
            if value in (member.name, str(member.value)):
                return member
        from torchx_tui.specs import ArgumentError

        names = ", ".join(member.name for member in kind)
        raise ArgumentError(name, f"`{value}` is not valid. Want one of {names}")
    if kind in (int, float, bool):
        from torchx_tui.specs import ArgumentError
        from torchx_tui.specs.run_options import parse_scalar

        try:
            return parse_scalar(kind.__name__, value)
        except ValueError as error:
            raise ArgumentError(name, str(error)) from error
    return value


def _describe(error: BaseException, path: str) -> dict[str, Any]:
    """Describe an error: its kind, its file and line, what it says."""
    import traceback

    from torchx_tui.specs import AppDefError, ArgumentError
    from torchx_tui.specs.errors import describe_error

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
        if isinstance(error, ImportError) and (error.name or "").partition(".")[0] == "torchx":
            reason += f". It is part of TorchX, which is not installed for {sys.executable}"
    return {"path": path, "line": lines[-1] if lines else None, "reason": reason}


# Modules

_loaded: dict[str, types.ModuleType] = {}


def _load(component: dict[str, Any]) -> Callable[..., Any]:
    """Return a component's function; its module is run the first time.

    A guest whose files have changed is replaced by the host, so no module is ever run again.
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
        from torchx_tui.specs import ComponentLoadError

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


def _project_files(path: str) -> Iterator[tuple[str, int]]:
    """Yield the files that were imported, but those of the interpreter and its packages, with their changes (ns)."""
    installed = tuple({sys.prefix + os.sep, sys.base_prefix + os.sep, os.path.dirname(os.__file__) + os.sep})
    files = {path}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not file.startswith(installed) and "site-packages" not in file:
            files.add(file)
    for file in files:
        try:
            yield file, os.stat(file).st_mtime_ns
        except OSError:
            yield file, 0


class _Ours:
    """Finds the package torchx_tui where the host has it, whatever is installed here.

    Args:
        root: the folder of the package.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Find the package itself; its modules are found by its path."""
        if name != "torchx_tui":
            return None
        return importlib.util.spec_from_file_location(
            name, os.path.join(self._root, "__init__.py"), submodule_search_locations=[self._root]
        )


class _Libraries:
    """Finds the few libraries that torchx_tui needs itself, where this interpreter has none of the name.

    Args:
        folders: where the host has each.
    """

    def __init__(self, folders: dict[str, str]) -> None:
        self._folders = folders

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Find a library."""
        folder = self._folders.get(name)
        return importlib.machinery.PathFinder.find_spec(name, [folder]) if folder else None


class _TorchX:
    """Answers `torchx` with ours where TorchX cannot be imported.

    It is the last that is asked, so it hears of `torchx` only where nobody else has it; then of all below it first.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Find a module of TorchX."""
        if name.partition(".")[0] != "torchx":
            return None
        if name not in _TORCHX_MODULES:
            raise ModuleNotFoundError(
                f"No module named '{name}'. It is part of TorchX, which is not installed for {sys.executable}",
                name=name,
            )
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Make a module whose names are those of ours, looked up when they are used."""
        home = ".".join(("torchx_tui", _TORCHX_MODULES[spec.name])).rstrip(".")
        module = types.ModuleType(spec.name, f"Names of TorchX from {home}.")

        def get(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            if name == "TORCHX_IMAGE" or (spec.name == "torchx" and name == "IMAGE"):
                return importlib.import_module("torchx_tui.components.image").DEFAULT_IMAGE
            return getattr(importlib.import_module(home), name)

        module.__getattr__ = get  # type: ignore[method-assign]
        if spec.name != "torchx":
            names = getattr(importlib.import_module(home), "__all__", None)
            if names is not None:
                module.__all__ = names  # type: ignore[attr-defined]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: the names are looked up when they are used."""


if __name__ == "__main__":
    main()
