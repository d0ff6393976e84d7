"""The program of a worker, started by path in the interpreter of a component's project.

Nothing of torchx-tui has to be installed there. There are two processes. The first waits for the end of the second or
of torchx-tui, which closes a socket even if it is killed; then it kills all that is left. The second runs the code.
"""

from __future__ import annotations

import _thread
import fcntl
import gc
import importlib
import importlib.machinery
import importlib.util
import json
import os
import resource
import signal
import sys
from typing import Any

# Above the descriptors that a program usually has.
_LOWEST_DESCRIPTOR = 200
_SIGNALS = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGTSTP", "SIGTTIN", "SIGTTOU")
_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Run both processes with the settings in the first argument."""
    # Collecting garbage while modules are imported takes a tenth of the start.
    gc.disable()
    settings = json.loads(sys.argv[1])
    channel, life = _above(settings["channel"]), _above(settings["life"])
    # Modules of the project are imported, not those beside this file.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    child = os.fork()
    if child:
        os.close(channel)
        os._exit(_watch(child, life, adopt=settings["adopt"]))
    os.close(life)
    os.setpgid(0, 0)
    _serve(settings, channel)
    os._exit(0)


def _above(descriptor: int) -> int:
    """Move a descriptor above the usual ones; programs that a component starts do not inherit it."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _LOWEST_DESCRIPTOR)
    os.close(descriptor)
    return moved


# The first process


def _watch(child: int, life: int, *, adopt: bool) -> int:
    """Wait for the end of the second process, kill what is left, and return the exit code that says how it ended."""
    for name in _SIGNALS:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    if adopt and sys.platform == "linux":
        # All that descendants leave behind becomes a child of this process, also in sessions of their own.
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _thread.start_new_thread(_end_with_host, (life, child))
    process = status = 0
    while process != child:
        process, status = os.waitpid(-1, 0)
    _kill(-child)
    while True:
        for process in _children():
            _kill(process)
        try:
            # Orphans of what is killed become children of this process.
            os.waitpid(-1, 0)
        except ChildProcessError:
            # As shells have it.
            return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _end_with_host(life: int, child: int) -> None:
    os.read(life, 1)
    _kill(child)


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except OSError:
        pass


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


# The second process


def _serve(settings: dict[str, Any], channel: int) -> None:
    sys.meta_path.insert(0, _Packages({"torchx_tui": settings["root"]}))
    hello = [sys.version_info[:3], os.getpid()]
    importlib.import_module("torchx_tui.guest.framing").send(channel, {"id": 0, "value": hello})
    if settings["memory"]:
        _limit_memory(settings["memory"])
    # Where this interpreter has no library of that name.
    sys.meta_path.append(_Packages(settings["libraries"]))
    sys.meta_path.append(importlib.import_module("torchx_tui.guest.torchx_modules").TorchXModules())
    module = importlib.import_module(settings["module"])
    gc.freeze()
    gc.enable()
    # Leave nothing in the folders of the project.
    sys.dont_write_bytecode = True
    if settings["path"] is not None:
        sys.path[:] = settings["path"]
    module.serve(channel, settings["idle_s"])


def _limit_memory(size: int) -> None:
    # Not the address space: libraries for GPUs reserve far more of it than they use.
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    if most == resource.RLIM_INFINITY or size < most:
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


class _Packages:
    """Finds packages in folders of torchx-tui.

    Args:
        folders: The folder of each package.
    """

    def __init__(self, folders: dict[str, str]) -> None:
        self._folders = folders

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Find a package itself; its modules are found by its path."""
        folder = self._folders.get(name)
        if folder is None:
            return None
        return importlib.util.spec_from_file_location(
            name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )


if __name__ == "__main__":
    main()
