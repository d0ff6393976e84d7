"""What doctor says of the program, the terminal and the folders."""

from __future__ import annotations

import locale
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from .. import __version__
from ..backends.types import Finding
from ..base.files import NoHomeError, cache_folder, path_exists, state_folder

SMALLEST = (80, 24)
# Milliseconds for which tmux takes an escape for the begin of a longer key.
_SLOW_ESCAPE = 100
_MULTIPLEXER_SECONDS = 3.0
_LITTLE_SPACE, _NO_SPACE = 1e9, 50e6
_NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "afs", "9p", "fuse.ssh")


def program_findings() -> Iterator[Finding]:
    """Yield what runs."""
    yield Finding("ok", f"torchx-tui {__version__}, Python {platform.python_version()} ({sys.executable})")


def terminal_findings(environ: Mapping[str, str] | None = None) -> Iterator[Finding]:
    """Yield what the dashboard would find in this terminal.

    Args:
        environ: the environment; this process's if None.
    """
    environ = os.environ if environ is None else environ
    # Those of the process: the dashboard puts others in the place of `sys.stderr`.
    typed, drawn = sys.__stdin__, sys.__stderr__
    if typed is None or drawn is None or not (typed.isatty() and drawn.isatty()):
        yield Finding("ok", "there is no terminal: shell commands work, the dashboard needs one")
    else:
        columns, rows = os.get_terminal_size(drawn.fileno())
        if not (columns and rows):
            yield Finding(
                "warning", "the terminal does not report its size: 80x24 is assumed", "`stty cols 120 rows 40`"
            )
        elif columns < SMALLEST[0] or rows < SMALLEST[1]:
            yield Finding("warning", f"the terminal has {columns}x{rows}, less than 80x24", "make the window larger")
        else:
            yield Finding("ok", f"{columns} columns, {rows} rows")
    yield _colors(environ)
    encoding = locale.getpreferredencoding(False)
    if encoding.upper().replace("-", "") == "UTF8":
        yield Finding("ok", "UTF-8")
    else:
        yield Finding(
            "warning", f"the locale's encoding is {encoding}", "`export LC_ALL=C.UTF-8`, or start with --ascii"
        )
    yield from _multiplexer(environ)


def _colors(environ: Mapping[str, str]) -> Finding:
    term = environ.get("TERM", "")
    if term in ("", "dumb"):
        advice = "set TERM to what the terminal is, such as xterm-256color"
        return Finding("error", f"TERM is {term or 'not set'}: the dashboard cannot draw", advice)
    if "NO_COLOR" in environ:
        return Finding("ok", f"TERM is {term}; NO_COLOR is set: no colours")
    if environ.get("COLORTERM") in ("truecolor", "24bit") or term.endswith("direct"):
        return Finding("ok", f"TERM is {term}: 16 million colours")
    if "256" in term:
        advice = "`export COLORTERM=truecolor` where the terminal has them all"
        return Finding("ok", f"TERM is {term}: 256 colours", advice)
    return Finding("ok", f"TERM is {term}: the terminal's own 16 colours")


def _multiplexer(environ: Mapping[str, str]) -> Iterator[Finding]:
    if environ.get("TMUX"):
        yield from _tmux()
    elif environ.get("TERM", "").startswith("screen"):
        yield Finding("ok", "GNU screen passes copies (OSC 52) to the outer terminal")
    elif environ.get("TERM", "dumb") != "dumb":
        yield Finding("ok", "copies go to the terminal's clipboard (OSC 52), if the terminal allows it")


def _tmux() -> Iterator[Finding]:
    settings = {name: _tmux_setting(name) for name in ("set-clipboard", "allow-passthrough", "escape-time")}
    if settings["set-clipboard"] == "off" and settings["allow-passthrough"] in ("off", ""):
        yield Finding("warning", "tmux does not pass copies (OSC 52) to the terminal", "`tmux set -g set-clipboard on`")
    else:
        yield Finding("ok", "tmux passes copies (OSC 52) to the outer terminal")
    delay = settings["escape-time"]
    if delay.isdecimal() and int(delay) > _SLOW_ESCAPE:
        yield Finding("warning", f"tmux delays the escape key by {delay} ms", "`tmux set -s escape-time 20`")


def _tmux_setting(name: str) -> str:
    """Return a setting of tmux, empty where it does not tell."""
    try:
        answer = subprocess.run(
            ["tmux", "show-options", "-gsv" if name == "escape-time" else "-gv", name],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_MULTIPLEXER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip()


def folder_findings() -> Iterator[Finding]:
    """Yield whether state and caches can be kept."""
    for what, folder, variable in (
        ("state", state_folder, "XDG_STATE_HOME"),
        ("caches", cache_folder, "XDG_CACHE_HOME"),
    ):
        try:
            yield from _folder(what, folder(), variable)
        except NoHomeError as error:
            yield Finding("error", f"{what}: {error}")


def _folder(what: str, folder: Path, variable: str) -> Iterator[Finding]:
    existing = next((path for path in (folder, *folder.parents) if path_exists(path)), folder)
    advice = f"set {variable} to a folder elsewhere"
    try:
        # Whoever is root may write by the modes of a file system that is read-only.
        writable = os.access(existing, os.W_OK) and not os.statvfs(existing).f_flag & os.ST_RDONLY
        free = shutil.disk_usage(existing).free
    except OSError as error:
        yield Finding("error", f"{what}: {folder}: {error.strerror}", advice)
        return
    kind = file_system(existing)
    words = f"{what}: {folder}, {free / 1e9:.1f} GB free{f', on {kind}' if kind else ''}"
    if not writable:
        yield Finding("error", f"{what}: {existing} cannot be written", advice)
    elif free < _NO_SPACE:
        yield Finding("error", words, f"make room: `torchx-tui prune` removes finished jobs; or {advice}")
    elif free < _LITTLE_SPACE:
        yield Finding("warning", words, f"make room: `torchx-tui prune` removes finished jobs; or {advice}")
    elif kind and what == "caches":
        yield Finding("warning", words, f"a network file system is slow for logs: {advice} on this machine")
    else:
        yield Finding("ok", words)


def file_system(path: Path, mounts: Path = Path("/proc/mounts")) -> str:
    """Return the kind of the network file system that holds a path, empty where it is none.

    Args:
        path: a path that exists.
        mounts: what is mounted, as Linux tells it.
    """
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
        resolved = path.resolve()
    except OSError:
        return ""
    best, kind = -1, ""
    for line in lines:
        _, _, rest = line.partition(" ")
        place, _, rest = rest.partition(" ")
        point = Path(place.replace("\\040", " "))
        # Of two mounts on one point the later one is seen.
        if (point == resolved or point in resolved.parents) and len(point.parts) >= best:
            best, kind = len(point.parts), rest.split(" ", 1)[0]
    return kind if kind.startswith(_NETWORK_FILE_SYSTEMS) else ""
