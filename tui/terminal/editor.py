"""Opening a file in the editor that a person has chosen."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from ...base.errors import TorchXTuiError

_VARIABLES = ("VISUAL", "EDITOR")
# How editors are told a line, by the names of their programs.
_PLUS = frozenset(
    [
        *("vi", "vim", "nvim", "view", "vimx", "gvim", "mvim", "nano", "rnano", "pico", "emacs", "emacsclient"),
        *("micro", "kak", "joe", "jed", "jove", "mg", "ne", "mcedit"),
    ]
)
_COLON = frozenset(["hx", "helix", "subl", "zed", "zeditor"])
_GOTO = frozenset(["code", "code-insiders", "codium", "vscodium", "cursor", "windsurf"])


class EditorError(TorchXTuiError):
    """No editor was chosen, or the choice is no command."""


def editor_command(path: Path, line: int, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the argument list that opens a file.

    Args:
        path: the file.
        line: the line to show, from 1; 0 for none. Editors that are not known are only given the file.
        environ: where ``VISUAL`` and ``EDITOR`` are looked up, in this order.

    Raises:
        EditorError: neither is set, or what is set cannot be parted into words.
    """
    name = next((name for name in _VARIABLES if environ.get(name, "").strip()), "")
    if not name:
        raise EditorError("no editor is set: `export EDITOR=vim`, or whichever you use, and start again")
    try:
        command = shlex.split(environ[name])
    except ValueError as error:
        raise EditorError(f"${name} is not a command ({error}): {environ[name]}") from error
    file, program = str(path.absolute()), Path(command[0]).name
    if line < 1:
        return [*command, file]
    if program in _PLUS:
        return [*command, f"+{line}", file]
    if program in _COLON:
        return [*command, f"{file}:{line}"]
    if program in _GOTO:
        return [*command, "-g", f"{file}:{line}"]
    return [*command, file]
