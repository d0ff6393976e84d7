"""The program of a guest: runs components in the interpreter of their project and answers over pipes.

`host.py` starts it by path; nothing of torchx-tui has to be installed for the interpreter. There are two processes.
The first waits until the second ends, or until the host does, whose end of a pipe is closed then even if it is killed;
then it kills everything that is left. The second runs the code.

Requests and answers are JSON, one a line, over descriptors of their own. The first answer is
``{"hello": {"protocol": 1, "version": [3, 11, 7], "process": 4711}}``, the last is ``{"ended": WAIT STATUS}``. Those
between are of the module that the settings name: `builder` for components. This file has no more than what comes
before that module, since Python compiles it at each start.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import importlib.machinery
import importlib.util
import json
import os
import resource
import select
import signal
import sys
from collections.abc import Callable
from typing import Any

PROTOCOL = 1
# Descriptors of ours stand above those that a program usually has.
_LOWEST_DESCRIPTOR = 200
_SIGNALS = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGTSTP", "SIGTTIN", "SIGTTOU")
_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Run both processes, as the settings in the first argument say."""
    # What is imported stays: to look for garbage meanwhile costs a tenth of the start.
    gc.disable()
    settings = json.loads(sys.argv[1])
    requests, answers, life = (_above(settings[name]) for name in ("requests", "answers", "life"))
    # What is imported is the project's, not what stands beside this file.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    child = os.fork()
    if child:
        _watch(child, life, answers, woken, wake, adopt=settings["adopt"])
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
    try:
        kill(target, signal.SIGKILL)
    except OSError:
        pass


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
    sys.meta_path.insert(0, _Ours(settings["root"]))
    sys.meta_path.append(_Libraries(settings["libraries"]))
    sys.meta_path.append(importlib.import_module("torchx_tui.guest.torchx_modules").TorchXModules())
    service = importlib.import_module(settings["service"])
    gc.freeze()
    gc.enable()
    # Of the project's files nothing is left in its folders.
    sys.dont_write_bytecode = True
    if "path" in settings:
        sys.path[:] = settings["path"]
    service.serve(requests, answers, *settings["arguments"])


def _limit_memory(size: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    if most == resource.RLIM_INFINITY or size < most:
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


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


if __name__ == "__main__":
    main()
