"""What a rank waits for outside collectives, as far as its frames, its line of source and the kernel show it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .frames import Frame


class Doing(NamedTuple):
    """What one rank does, and the same of several."""

    one: str
    several: str


def _waits(what: str) -> Doing:
    return Doing(f"waits for {what}", f"wait for {what}")


_SUBPROCESS, _LOCK, _FILE_LOCK, _SOCKET = map(_waits, ("a subprocess", "a lock", "a file lock", "a socket"))
_INPUT, _QUEUE, _THREAD = map(_waits, ("input", "a queue", "a thread"))
_SLEEPS, _PIPE = Doing("sleeps", "sleep"), Doing("reads a pipe", "read a pipe")
# Libraries that wait in Python: file and function of a frame inside the innermost one of the user's. A queue waits for
# a condition, so the general ones come last.
_FRAMES = (
    (r"/(?:pdb|bdb|cmd)\.py:|/IPython/.*:", _waits("input (debugger)")),
    (r"/(?:code|codeop|getpass)\.py:", _INPUT),
    (r"/(?:filelock|portalocker|fasteners)/", _FILE_LOCK),
    (r"/subprocess\.py:", _SUBPROCESS),
    (r"/multiprocessing/(?:popen_\w+|process)\.py:(?:\w+\.)*(?:wait|poll|join)$", _waits("a child process")),
    (r"/multiprocessing/pool\.py:(?:\w+\.)*(?:get|wait|next|join)$", _waits("a pool of processes")),
    (r"/(?:multiprocessing/queues|queue)\.py:(?:\w+\.)*(?:get|put|join)$", _QUEUE),
    (r"/concurrent/futures/", _waits("a future")),
    (r"/(?:socket|ssl|http/client)\.py:|/(?:urllib3|requests|httpx|aiohttp|botocore|paramiko|grpc)/", _SOCKET),
    (r"/asyncio/", _waits("an event loop")),
    (r"/threading\.py:(?:\w+\.)*(?:join|_wait_for_tstate_lock)$", _THREAD),
    (r"/threading\.py:(?:\w+\.)*(?:wait|wait_for|acquire|__enter__)$", _LOCK),
)
# Calls into C have no frame: the line that the user's innermost frame is at.
_SOURCES = (
    (r"\bsleep\(", _SLEEPS),
    (r"\b(?:input|breakpoint|set_trace|getpass)\(", _INPUT),
    (r"\b(?:flock|lockf)\(", _FILE_LOCK),
    (r"\bsubprocess\.|\bos\.(?:system|wait\w*|popen)\(", _SUBPROCESS),
    (r"(?i)\.acquire\(|^\s*with\s+[\w.]*lock\w*\b", _LOCK),
    (r"(?i)[\w.]*(?:sock|conn)\w*\.\w+\(|\.(?:recv\w*|accept|sendall)\(", _SOCKET),
    (r"\bos\.read\(", _PIPE),
)
# The function of the kernel that the main thread waits in. A futex may be a lock, or the interpreter's own.
_KERNEL = (
    (r"do_wait$", _SUBPROCESS),
    (r"hrtimer_nanosleep|do_nanosleep", _SLEEPS),
    (r"locks?_lock|flock_lock", _FILE_LOCK),
    (r"n_tty_read|tty_read", _INPUT),
    (r"pipe_(?:read|wait)", _PIPE),
    (r"^(?:unix_|inet_|tcp_|sk_|__skb_)", _SOCKET),
)


def describe_wait(frames: Sequence[Frame], source: str, kernel: str) -> Doing | None:
    """Return what a process waits for; None where nothing shows it.

    Args:
        frames: the frames of its main thread, innermost first.
        source: the line that the innermost frame is at, where that is the user's own.
        kernel: the kernel's function that it waits in; empty where that is not known.
    """
    inner: list[str] = []
    for frame in frames:
        if not frame.is_library:
            break
        inner.append(f"{frame.file}:{frame.function}")
    for pattern, doing in _FRAMES:
        if any(re.search(pattern, call) for call in inner):
            return doing
    texts = ((_SOURCES, source if not inner else ""), (_KERNEL, kernel))
    return next((doing for table, text in texts for pattern, doing in table if text and re.search(pattern, text)), None)
