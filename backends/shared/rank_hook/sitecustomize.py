"""Lets a rank of a job be asked for its stack and its flight recorder while it hangs, without a change to its code.

This folder is put on the PYTHONPATH of jobs that torchx-tui launches, so that Python imports this file at its start
(see ``site`` in Python's documentation). It does nothing in a process that is no rank, or that never imports
``torch.distributed``. In a rank it starts torch's own worker server on a unix socket in the folder that the variable
TORCHX_TUI_INSIGHT names; 0 turns it off. Whatever fails here is passed over: the job goes on as without it.

It runs in the interpreters of jobs, Python 3.6 and later, without the package.
"""

import os
import sys

_FOLDER = "TORCHX_TUI_INSIGHT"
_MODULE = "torch.distributed"
_PID = os.getpid()
# A request that was accepted is answered within some milliseconds.
_ANSWER_S = 0.05


class _AfterImport:
    """Calls a function once, after a module was imported: costs nothing until then, and needs no thread."""

    def __init__(self, name, call):
        self.name, self.call = name, call

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        from importlib.machinery import PathFinder

        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)
        loader = getattr(spec, "loader", None)
        execute = getattr(loader, "exec_module", None)
        if loader is None or execute is None:
            return spec

        def exec_module(module):
            execute(module)
            try:
                self.call()
            except Exception:  # such as a torch without the server
                pass

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass
        return spec


def _start_server():
    """Start the worker server; its socket is named by rank and process, since children share the rank."""
    import ctypes

    from torch._C._distributed_c10d import _WorkerServer

    # A unix socket's path has at most 107 bytes: one through an open descriptor is short, whatever the folder.
    folder = os.open(os.environ[_FOLDER], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        path = "/proc/self/fd/%d/%s.%d.sock" % (folder, os.environ["RANK"], os.getpid())
        with _WithoutNotices():
            server = _WorkerServer(path)
        # It is never stopped or destroyed: that waits for its thread, for ever in a forked child, where there is none,
        # and just after the start, before the thread listens. It ends with the process.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))
    finally:
        os.close(folder)


class _WithoutNotices:
    """Keeps the lines of the server off stderr; whatever else was written meanwhile comes after."""

    def __enter__(self):
        self.kept, self.stderr = os.memfd_create("stderr"), os.dup(2)
        os.dup2(self.kept, 2)

    def __exit__(self, *_raised):
        os.dup2(self.stderr, 2)
        size = os.fstat(self.kept).st_size
        for line in os.pread(self.kept, size, 0).splitlines(True):
            if b"WorkerServer.cpp" not in line:
                os.write(2, line)
        os.close(self.kept)
        os.close(self.stderr)


def _close_server():
    """Stop serving requests: a request that needs the GIL during finalization would abort the process."""
    import time

    try:
        os.unlink("%s/%s.%d.sock" % (os.environ[_FOLDER], os.environ["RANK"], _PID))
    except OSError:
        return
    time.sleep(_ANSWER_S)


def _dump_on_failure():
    """Write the flight recorder when an exception has ended the rank: gloo's writes none by itself."""
    failed = getattr(sys, "last_exc", None) or getattr(sys, "last_type", None)
    prefix = os.environ.get("TORCH_FR_DUMP_TEMP_FILE")
    if failed is None or not prefix or _MODULE not in sys.modules:
        return
    from torch._C import _distributed_c10d as c10d

    data = getattr(c10d, "_dump_fr_trace")(True, True, False)
    try:
        file = os.open(prefix + os.environ["RANK"], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:  # the watchdog of NCCL has written one
        return
    os.write(file, data)
    os.close(file)


def _forget_attempt():
    """Remove the dump that the rank left when torchrun had started it before: it tells nothing of this attempt."""
    prefix = os.environ.get("TORCH_FR_DUMP_TEMP_FILE", "")
    if os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0" or not prefix.startswith(os.environ[_FOLDER] + "/"):
        return
    with open("/proc/%d/environ" % os.getppid(), "rb") as file:
        is_of_rank = b"\0RANK=" in b"\0" + file.read()
    if not is_of_rank:  # else a program that the rank has started
        os.unlink(prefix + os.environ["RANK"])


def _prepare():
    import atexit

    def leave():
        try:
            if os.getpid() == _PID:
                _close_server()
                _dump_on_failure()
        except Exception:  # the job ends as it would without this file
            pass

    sys.meta_path.insert(0, _AfterImport(_MODULE, _start_server))
    atexit.register(leave)
    _forget_attempt()


def _chain():
    """Run the sitecustomize that would have been imported without this one; it may fail as it would have."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != here]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    # Of a worker that was spawned the stack is read from outside.
    if os.environ.get(_FOLDER, "0") != "0" and "RANK" in os.environ and "--multiprocessing-fork" not in sys.argv:
        _prepare()
except Exception:  # the job starts as it would without this file
    pass
_chain()
