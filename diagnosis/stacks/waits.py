"""The wait of a rank outside collectives, from its frames, source line and kernel function."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from ..frames import Frame

_SUBPROCESS, _LOCK, _FILE_LOCK = "waits for a subprocess", "waits for a lock", "waits for a file lock"
_SOCKET, _INPUT = "waits for a socket", "waits for input"
_SLEEPS, _PIPE = "sleeps", "reads a pipe"
# Libraries that wait in Python, matched against file and function of the library frames inside the user's innermost
# frame. The first match counts: a queue waits for a condition, so general patterns come last.
_FRAMES = (
    (r"/(?:pdb|bdb|cmd)\.py:|/IPython/.*:", "waits for input (debugger)"),
    (r"/(?:code|codeop|getpass)\.py:", _INPUT),
    (r"/(?:filelock|portalocker|fasteners)/", _FILE_LOCK),
    (r"/subprocess\.py:", _SUBPROCESS),
    (r"/multiprocessing/(?:popen_\w+|process)\.py:(?:\w+\.)*(?:wait|poll|join)$", "waits for a child process"),
    (r"/multiprocessing/pool\.py:(?:\w+\.)*(?:get|wait|next|join)$", "waits for a pool of processes"),
    (r"/(?:multiprocessing/queues|queue)\.py:(?:\w+\.)*(?:get|put|join)$", "waits for a queue"),
    (r"/concurrent/futures/", "waits for a future"),
    (r"/(?:socket|ssl|http/client)\.py:|/(?:urllib3|requests|httpx|aiohttp|botocore|paramiko|grpc)/", _SOCKET),
    (r"/asyncio/", "waits for an event loop"),
    (r"/threading\.py:(?:\w+\.)*(?:join|_wait_for_tstate_lock)$", "waits for a thread"),
    (r"/threading\.py:(?:\w+\.)*(?:wait|wait_for|acquire|__enter__)$", _LOCK),
)
# Calls into C have no frame, so these match the source line of the user's innermost frame.
_SOURCES = (
    (r"\bsleep\(", _SLEEPS),
    (r"\b(?:input|breakpoint|set_trace|getpass)\(", _INPUT),
    (r"\b(?:flock|lockf)\(", _FILE_LOCK),
    (r"\bsubprocess\.|\bos\.(?:system|wait\w*|popen)\(", _SUBPROCESS),
    (r"(?i)\.acquire\(|^\s*with\s+[\w.]*lock\w*\b", _LOCK),
    (r"(?i)[\w.]*(?:sock|conn)\w*\.\w+\(|\.(?:recv\w*|accept|sendall)\(", _SOCKET),
    (r"\bos\.read\(", _PIPE),
)
# The kernel function in which the main thread waits. A futex is not listed: the interpreter uses it as well.
_KERNEL = (
    (r"do_wait$", _SUBPROCESS),
    (r"hrtimer_nanosleep|do_nanosleep", _SLEEPS),
    (r"locks?_lock|flock_lock", _FILE_LOCK),
    (r"n_tty_read|tty_read", _INPUT),
    (r"pipe_(?:read|wait)", _PIPE),
    (r"^(?:unix_|inet_|tcp_|sk_|__skb_)", _SOCKET),
)


def find_wait(frames: Sequence[Frame], source: str, kernel: str) -> str | None:
    """Describe the wait of a process as of one rank: ``waits for a lock``; return None if it is unknown.

    Args:
        frames: the frames of its main thread, innermost first.
        source: the source line of the innermost frame, if that is the user's code.
        kernel: the kernel function in which it waits; empty if unknown.
    """
    library = itertools.takewhile(lambda frame: frame.is_library, frames)
    inner = [f"{frame.file}:{frame.function}" for frame in library]
    for pattern, wait in _FRAMES:
        if any(re.search(pattern, call) for call in inner):
            return wait
    texts = ((_SOURCES, source if not inner else ""), (_KERNEL, kernel))
    return next((wait for table, text in texts for pattern, wait in table if text and re.search(pattern, text)), None)
