"""Which Python script a command runs, and whether it will be there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePath, PurePosixPath

from ...base.errors import describe_error
from ...base.files import path_exists
from ...specs.roles import Role
from ..types import Finding
from .build_context import CONTEXT_IGNORE_FILES, DOCKERFILE
from .walking import folder_patterns, is_url

_PYTHON = re.compile(r"python(\d+(\.\d+)*)?")
# Options of the interpreter that take the next word, and those after which no script comes.
_PYTHON_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch")
_TORCHRUN_FLAGS = frozenset(["standalone", "run-path", "use-env"])
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
# What a shell would replace, so that nobody can tell here what it becomes.
_REPLACED = re.compile(r"[$`*?\[{]")


def python_command(command: Sequence[str]) -> list[str]:
    """Return the command of Python or torchrun that a command is, or that a shell is given first; else nothing.

    Args:
        command: the program and its arguments.
    """
    words = list(command)
    program = PurePath(words[0]).name if words else ""
    if program in _SHELLS:
        return python_command(_first_of_shell(words[1:]))
    return words if program == "torchrun" or _PYTHON.fullmatch(program) else []


def script_of(command: Sequence[str]) -> str | None:
    """Return the Python script that a command runs, as it is written there; None where there is none, or none is sure.

    Args:
        command: the program and its arguments: Python or torchrun, by themselves or as the first command of a shell.
    """
    words = python_command(command)
    if not words:
        return None
    is_torchrun = PurePath(words[0]).name == "torchrun"
    script = _of_torchrun(words[1:]) if is_torchrun else _of_python(words[1:])
    if script is None or _REPLACED.search(script):
        return None
    # Of `~` only a shell makes a folder.
    return str(Path(script).expanduser()) if words[0] != command[0] else script


def script_findings(role: str, command: Sequence[str], folder: str) -> list[Finding]:
    """Return that the script of a command is not where it is started.

    Args:
        role: the role's name.
        command: the program and its arguments.
        folder: the folder that it is started in, on this machine.
    """
    script = script_of(command)
    if script is None:
        return []
    try:
        Path(folder, script).stat()
    except (FileNotFoundError, NotADirectoryError):
        where = "" if Path(script).is_absolute() else f" in {folder}"
        hint = "correct the path, or start in the folder that it is in"
        return [Finding("error", f"{role}: there is no file {script}{where}", hint)]
    except (OSError, ValueError) as error:
        return [Finding("error", f"{role}: {describe_error(error)}", "correct the path, or its permissions")]
    return []


def workspace_findings(role: Role) -> list[Finding]:
    """Return that the script of a role's command is not among the files that travel with it.

    It may be in the image all the same, so this is a warning.
    """
    script = script_of([role.entrypoint, *role.args])
    projects = role.workspace.projects if role.workspace else {}
    if not script or not projects or PurePosixPath(script).is_absolute():
        return []
    for local, remote in projects.items():
        if is_url(local) or path_exists(Path(local, DOCKERFILE).expanduser()):
            return []
        below = _below(script, remote)
        if below is None or not path_exists(Path(local, below).expanduser()):
            continue
        if remote or not _stays_at_home(Path(local).expanduser(), below):
            return []
        return [Finding("warning", f"{role.name}: {script} stays at home", f"{local}/.dockerignore names it")]
    hint = "correct the path, unless the image has it in its working folder"
    return [Finding("warning", f"{role.name}: {script} is not in the workspace {role.workspace}", hint)]


def _below(script: str, remote: str) -> str | None:
    """Return a script's path in the project that goes into a folder; None where it is not in it."""
    path = PurePosixPath(script)
    if not remote:
        return str(path)
    if PurePosixPath(remote) == path:
        return ""
    return str(path.relative_to(remote)) if path.is_relative_to(remote) else None


def _stays_at_home(folder: Path, path: str) -> bool:
    try:
        return folder_patterns(folder, CONTEXT_IGNORE_FILES).is_ignored(path)
    except OSError:
        return False


def _first_of_shell(words: list[str]) -> list[str]:
    """Return the first command of the text in `sh -c TEXT`."""
    for number, word in enumerate(words):
        if re.fullmatch(r"-[a-zA-Z]*c", word):
            return _first_command(*words[number + 1 : number + 2])
        if not word.startswith("-"):
            break
    return []


def _first_command(text: str = "") -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    command: list[str] = []
    try:
        for word in lexer:
            if word and word[0] in "();<>|&":
                break
            if command or (word != "exec" and not re.fullmatch(r"\w+=.*", word)):
                command.append(word)
    except ValueError:
        return []
    # A shell in a shell may be in another folder by then.
    return [] if command and PurePath(command[0]).name in _SHELLS else command


def _of_python(words: list[str]) -> str | None:
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word == "-m" or (word.startswith("-") and not word.startswith("--") and word.endswith("m")):
            module = waiting.pop(0) if waiting else ""
            return _of_torchrun(waiting) if module in _LAUNCHERS else None
        if word == "-" or re.fullmatch(r"-[a-zA-Z]*c.*", word):
            return None
        if word in _PYTHON_WITH_VALUE:
            waiting[:1] = []
        elif not word.startswith("-"):
            return word
    return None


def _of_torchrun(words: list[str]) -> str | None:
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name = word.lstrip("-").replace("_", "-")
        if word == "-m" or name in ("module", "no-python", "help") or word == "-h":
            return None
        if not word.startswith("-"):
            return word
        if name not in _TORCHRUN_FLAGS and "=" not in word:
            waiting[:1] = []
    return None
