"""Checks of the program, the terminal and the folders."""

from __future__ import annotations

import locale
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from .. import __version__
from ..backends.types import Finding
from ..base.files import NoHomeError, cache_folder, path_exists, state_folder
from . import Findings

SMALLEST = (80, 24)
# tmux waits this long for the rest of a key that begins with an escape.
_SLOW_ESCAPE_MS = 100
_MULTIPLEXER_SECONDS = 3.0
_LITTLE_SPACE, _NO_SPACE = 1e9, 50e6
_NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "afs", "9p", "fuse.ssh")


def program_findings() -> Findings:
    """Yield the versions."""
    yield Finding("ok", f"torchx-tui {__version__}, Python {platform.python_version()} ({sys.executable})")


def terminal_findings(environ: Mapping[str, str] | None = None) -> Findings:
    """Yield what limits the dashboard in this terminal.

    Args:
        environ: the environment; this process's if None.
    """
    environ = os.environ if environ is None else environ
    # The dashboard replaces `sys.stderr`.
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
    if environ.get("TMUX"):
        yield from _tmux()
    elif environ.get("TERM", "").startswith("screen"):
        yield Finding("ok", "GNU screen passes copies (OSC 52) to the outer terminal")
    elif environ.get("TERM", "dumb") != "dumb":
        yield Finding("ok", "copies go to the terminal's clipboard (OSC 52), if the terminal allows it")


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


def _tmux() -> Findings:
    settings = {name: _tmux_setting(name) for name in ("set-clipboard", "allow-passthrough", "escape-time")}
    if settings["set-clipboard"] == "off" and settings["allow-passthrough"] in ("off", ""):
        yield Finding("warning", "tmux does not pass copies (OSC 52) to the terminal", "`tmux set -g set-clipboard on`")
    else:
        yield Finding("ok", "tmux passes copies (OSC 52) to the outer terminal")
    delay = settings["escape-time"]
    if delay.isdecimal() and int(delay) > _SLOW_ESCAPE_MS:
        yield Finding("warning", f"tmux delays the escape key by {delay} ms", "`tmux set -s escape-time 20`")


def _tmux_setting(name: str) -> str:
    """Return a setting of tmux; empty if it is not known."""
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


def folder_findings() -> Findings:
    """Yield whether the state and cache folders can be written."""
    for what, folder, variable in (
        ("state", state_folder, "XDG_STATE_HOME"),
        ("caches", cache_folder, "XDG_CACHE_HOME"),
    ):
        try:
            yield from _folder(what, folder(), variable)
        except NoHomeError as error:
            yield Finding("error", f"{what}: {error}")


def _folder(what: str, folder: Path, variable: str) -> Findings:
    existing = next((path for path in (folder, *folder.parents) if path_exists(path)), folder)
    advice = f"set {variable} to a folder elsewhere"
    try:
        # For root, the mode of a read-only file system allows to write.
        writable = os.access(existing, os.W_OK) and not os.statvfs(existing).f_flag & os.ST_RDONLY
        free = shutil.disk_usage(existing).free
    except OSError as error:
        yield Finding("error", f"{what}: {folder}: {error.strerror}", advice)
        return
    kind = file_system(existing)
    words = f"{what}: {folder}, {free / 1e9:.1f} GB free{f', on {kind}' if kind else ''}"
    if not writable:
        yield Finding("error", f"{what}: {existing} cannot be written", advice)
    elif free < _LITTLE_SPACE:
        level = "error" if free < _NO_SPACE else "warning"
        yield Finding(level, words, f"make room: `torchx-tui prune` removes finished jobs; or {advice}")
    elif kind and what == "caches":
        yield Finding("warning", words, f"a network file system is slow for logs: {advice} on this machine")
    else:
        yield Finding("ok", words)


def file_system(path: Path) -> str:
    """Return the kind of the network file system of an existing path; empty on other file systems."""
    import psutil

    try:
        resolved = path.resolve()
        partitions = psutil.disk_partitions(all=True)
    except OSError:
        return ""
    # A later mount hides an earlier one on the same folder.
    mounted = [one for one in reversed(partitions) if resolved.is_relative_to(one.mountpoint)]
    kind = max(mounted, key=lambda one: len(one.mountpoint)).fstype if mounted else ""
    return kind if kind.startswith(_NETWORK_FILE_SYSTEMS) else ""
