"""A machine with a clock that jumps, and a file system that takes no locks and tells sizes and times late."""

from __future__ import annotations

from pathlib import Path

# Python reads it at its start, before any module of ours.
_SITE = """
import errno, fcntl, os, time

_time, _stat, _fstat, _clock = time.time, os.stat, os.fstat, os.environ["ODD_CLOCK"]
_LAG = 1.0
_known = {}


def jumping():
    try:
        with open(_clock) as file:
            return _time() + float(file.read())
    except (OSError, ValueError):
        return _time()


def refused(*arguments):
    raise OSError(errno.ENOLCK, "No locks available")


def late(ask, key):
    now = time.monotonic()
    if key in _known and now - _known[key][0] < _LAG:
        return _known[key][1]
    found = ask()
    _known[key] = now, found
    return found


def late_stat(path, **options):
    key = os.fspath(path) if not isinstance(path, int) else path
    return late(lambda: _stat(path, **options), (key, tuple(options.items())))


def late_fstat(number):
    found = _fstat(number)
    return late(lambda: found, (found.st_dev, found.st_ino))


if os.environ.get("ODD_FILES"):
    fcntl.flock = fcntl.lockf = refused
    os.stat, os.fstat = late_stat, late_fstat
time.time = jumping
"""


def make_odd(folder: Path, *, files: bool) -> tuple[dict[str, str], Path]:
    """Return the environment of programs on such a machine, and the file with how far its clock is off (s).

    Args:
        folder: for what makes it odd.
        files: whether its files are odd too.
    """
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_SITE)
    clock = folder / "clock"
    return {"PYTHONPATH": str(folder), "ODD_CLOCK": str(clock), "ODD_FILES": "1" if files else ""}, clock
