"""A process that can harm nothing: it sees this machine's files read-only, and no process but its own.

What it starts ends with it, daemons too. This is Linux's: `unshare(2)`, as root or where users may have namespaces.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

_NEWNS, _NEWUSER, _NEWPID = 0x20000, 0x10000000, 0x20000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 32, 4096, 16384, 1 << 18
_KEPT_FLAGS = {"nosuid": 2, "nodev": 4, "noexec": 8, "noatime": 1024, "nodiratime": 2048, "relatime": 1 << 21}
TIMED_OUT, NOT_CONTAINED = 124, 125


def start(
    work: Callable[[], int],
    own: Path,
    *,
    limit: float,
    replaced: tuple[Path, str] | None = None,
    writable: Sequence[Path] = (),
) -> int:
    """Return the id of a process whose exit code is what ``work`` returns.

    Args:
        work: what it does.
        own: a folder that this process sees empty, and may write. What it writes is gone with it.
        limit: after so many seconds it is ended; its exit code is then `TIMED_OUT`.
        replaced: a file, and the text that it has for this process.
        writable: folders that may be written as well.
    """
    if pid := os.fork():
        return pid
    try:
        os._exit(_exit_code(work, own, limit, replaced, writable))
    finally:
        os._exit(NOT_CONTAINED)  # whatever was raised: the parent's code is not run twice


def _exit_code(
    work: Callable[[], int], own: Path, limit: float, replaced: tuple[Path, str] | None, writable: Sequence[Path]
) -> int:
    try:
        return _contained(work, own, limit, replaced, writable)
    except OSError as error:
        print(f"mutants: this machine gives no namespaces to run them in safely: {error}", file=sys.stderr)
    return NOT_CONTAINED


def _contained(
    work: Callable[[], int], own: Path, limit: float, replaced: tuple[Path, str] | None, writable: Sequence[Path]
) -> int:
    _end_with_parent()
    user, group = os.geteuid(), os.getegid()
    _call("unshare", _NEWNS | _NEWPID | (_NEWUSER if user else 0))
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _mount("none", "/", _RECURSIVE | _PRIVATE)
    _mount("tmpfs", str(own), 0, kind="tmpfs")
    for folder in writable:
        _mount(str(folder), str(folder), _BIND)
    if replaced is not None:
        (own / "replaced").write_text(replaced[1], encoding="utf-8")
        _mount(str(own / "replaced"), str(replaced[0]), _BIND)
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point, flags = line.split()[4:6]
        if point.startswith(("/proc", "/sys", "/dev", str(own))) or Path(point) in writable:
            continue
        kept = sum(flag for name, flag in _KEPT_FLAGS.items() if name in flags.split(","))
        try:
            _mount("none", point, _REMOUNT | _BIND | _READ_ONLY | kept)
        except OSError:
            # Somebody else's mount may be gone by now, with or without its folder, such as a container's.
            if any(line.split()[4] == point for line in Path("/proc/self/mountinfo").read_text().splitlines()):
                raise
    first = os.fork()
    if not first:
        _first_process(work)

    def end(*_: object) -> None:
        os.kill(first, signal.SIGKILL)
        os.waitpid(first, 0)
        os._exit(TIMED_OUT)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit)
    return os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])


def _first_process(work: Callable[[], int]) -> None:
    """Be the process 1 of the namespace: with its end everything in there ends."""
    code = NOT_CONTAINED
    try:
        _end_with_parent()
        _mount("proc", "/proc", 0, kind="proc")
        worker = os.fork()
        if not worker:
            os.setsid()
            code = work()
        else:
            ended, status = 0, 0
            while ended != worker:
                ended, status = os.wait()
            code = abs(os.waitstatus_to_exitcode(status))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _end_with_parent() -> None:
    _call("prctl", 1, signal.SIGKILL)


def _mount(source: str, target: str, flags: int, *, kind: str = "none") -> None:
    _call("mount", source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), None)


def _call(name: str, *arguments: object) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}{arguments}: {os.strerror(number)}")
