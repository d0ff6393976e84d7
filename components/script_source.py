"""Reads the arguments of a Python script from its source; nothing is run."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..base.files import current_folder, read_file
from ..base.modules import SearchPath, module_path, parse_source
from ..specs.errors import ComponentLoadError
from .model import REQUIRED, Computed
from .sbatch_script import SET_ELSEWHERE
from .script_arguments import LONGEST_NAME, ScriptArgument, is_name, make_argument
from .script_imports import FindModule, Imports, package_of
from .script_libraries import LibraryReader
from .script_syntax import Syntax, TooSlowError
from .source import TOO_DEEP

MAX_BYTES = 150_000
"""A larger file is not read: parsing it takes longer than a person waits."""
_MAX_SECONDS = 0.2
_MAX_ARGUMENTS, _MAX_NOTES, _LONGEST_NOTE = 2_000, 20, 200
# Variables that torchrun, a shell, a login or Slurm sets.
_SET_BY_LAUNCHER = re.compile(
    r"(?:LOCAL_|GROUP_|NODE_)?RANK|(?:LOCAL_|ROLE_)?WORLD_SIZE|MASTER_(?:ADDR|PORT)|TORCHELASTIC_\w*|JOB_ID|"
    + SET_ELSEWHERE.pattern
)
# A `__main__` block, or a line of the top level that parses arguments.
_IS_SCRIPT = re.compile(
    rb"^(?:if\s+__name__\s*==|(?!def |class |async |@|#)\S.*?\b(?:"
    rb"parse_(?:known_)?args\w*|fire\.Fire|tyro\.cli|typer\.run|app\.run|HfArgumentParser)\(|exec\(open\()",
    re.MULTILINE,
)


_DOCSTRING = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:[ \t]*(?:#[^\n]*)?\r?\n)*[rRuU]?(?:"
    rb'"""(?:[^\\]|\\.)*?"""'
    rb"|'''(?:[^\\]|\\.)*?'''"
    rb"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')""",
    re.DOTALL,
)


@dataclass
class ScriptSource:
    """What is read in a script.

    Attributes:
        arguments: Its arguments in their order, its subcommand among them, and the variables of its environment last.
        notes: What could not be read, as sentences, with the line or 0.
        docstring: Its docstring.
    """

    arguments: list[ScriptArgument] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)
    docstring: str = ""

    def add(self, arguments: Iterable[ScriptArgument]) -> None:
        """Add arguments whose names are not taken; note those that cannot be typed."""
        taken = {argument.name for argument in self.arguments}
        for argument in arguments:
            if not is_name(argument.name) or not all(map(is_name, (flag.lstrip("-") for flag in argument.type.flags))):
                self.note(None, f"the argument {argument.name[:LONGEST_NAME]!r}, whose name cannot be typed")
            elif len(taken) >= _MAX_ARGUMENTS:
                self.note(None, f"more than {_MAX_ARGUMENTS:,} arguments")
                return
            elif argument.name not in taken:
                taken.add(argument.name)
                self.arguments.append(argument)

    def note(self, node: ast.AST | None, what: str) -> None:
        """Note what cannot be read at a node."""
        note = getattr(node, "lineno", 0), what[:_LONGEST_NOTE]
        if note not in self.notes and len(self.notes) < _MAX_NOTES:
            self.notes.append(note)


def script_docstring(text: bytes) -> str | None:
    """Return the docstring of a script, empty without one; None for a Python file that is no script.

    A script has a `__main__` block, or its top level parses arguments.
    """
    if not _IS_SCRIPT.search(text):
        return None
    # To parse all of it would hold the interpreter's lock for too long.
    start = _DOCSTRING.match(text)
    try:
        return (ast.get_docstring(parse_source(start[0])) or "") if start else ""
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # It may be of another version of Python.
        return ""


def read_script_source(path: Path, module: str, installed: FindModule) -> ScriptSource:
    """Read a script. What cannot be read is a note.

    Args:
        path: Its file.
        module: Its name if it is run as a module of the current folder; empty if it is run as a file.
        installed: Finds the file of a module of its environment.

    Raises:
        OSError: The file cannot be read.
        ComponentLoadError: It has components and a syntax error.
    """
    if path.stat().st_size > MAX_BYTES:
        return ScriptSource(notes=[(0, f"it has more than {MAX_BYTES // 1000} kB")])
    return read_script_text(read_file(path, MAX_BYTES), path, module, installed)


def read_script_text(text: bytes, path: Path, module: str = "", installed: FindModule = lambda _: None) -> ScriptSource:
    """Read the text of a script, as `read_script_source` reads its file."""
    found = ScriptSource()
    try:
        _read(found, text, path, module, installed)
    except TooSlowError:
        found.notes.append((0, "all of its arguments: it is too large"))
    except SyntaxError as error:
        reason = f"syntax error: {error.msg}"
        # A file of components; a script may be in the syntax of a newer Python.
        if b"AppDef" in text:
            raise ComponentLoadError(str(path), error.lineno, reason) from error
        found.notes.append((error.lineno or 0, reason))
    except (RecursionError, MemoryError):
        found.notes.append((0, f"it is {TOO_DEEP}"))
    except Exception as error:  # a source can use the libraries in any way; it can be launched all the same
        found.notes.append((0, f"its arguments ({type(error).__name__}: {error})"))
    return found


def _read(found: ScriptSource, text: bytes, path: Path, module: str, installed: FindModule) -> None:
    """Read the arguments of all libraries, then the variables of the environment."""
    folder = SearchPath((str((current_folder() if module else None) or path.parent),))
    imports = Imports(lambda name: module_path(name, folder), installed)
    syntax = Syntax(text, path, time.thread_time() + _MAX_SECONDS, package_of(module, path))
    found.docstring = ast.get_docstring(syntax.tree) or ""
    read = LibraryReader(syntax, imports, found.note).read()
    found.add(read.main)
    if read.commands:
        names = tuple(filter(is_name, read.commands))
        default = REQUIRED if read.needs_command else None
        help = "What the script does"
        found.add([make_argument(read.command, "str", default, choices=names, style="command", help=help)])
        found.add(_of_commands(read.commands))
    if read.hydra is not None:
        from .script_hydra import read_hydra

        arguments, unread = read_hydra(read.hydra, path)
        found.add(arguments)
        for reason in unread:
            found.note(None, reason)
    if not found.arguments:
        found.add(_constants(syntax))
    found.add(item for item in read.variables if not _SET_BY_LAUNCHER.fullmatch(item.name))


def _of_commands(commands: Mapping[str, list[ScriptArgument]]) -> Iterable[ScriptArgument]:
    """Return the arguments of subcommands; one that several have is one argument."""
    found: dict[str, ScriptArgument] = {}
    for command, arguments in commands.items():
        for argument in arguments:
            needed = (command,) if argument.default is REQUIRED else ()
            default = None if needed else argument.default
            known = found.get(argument.name, replace(argument, default=default))
            found[argument.name] = replace(
                known,
                default=default if known.default == default else Computed("depends on the subcommand"),
                type=replace(known.type, optional=default is None),
                commands=(*known.commands, command),
                needed_by=(*known.needed_by, *needed),
            )
    return found.values()


def _constants(syntax: Syntax) -> Iterable[ScriptArgument]:
    """Yield the constants of a script that runs a file which changes them by `--name=value`, as nanoGPT does."""
    lines = syntax.tree.body
    end = next((at for at, line in enumerate(lines) if ast.unparse(line).startswith("exec(open(")), 0)
    for line in lines[:end]:
        if isinstance(line, ast.Assign):
            name, value = ast.unparse(line.targets[0]), syntax.value(line.value)
            if isinstance(value, (int, float, str)) and not name.startswith("_"):
                yield make_argument(name, type(value).__name__, value, style="joined")
