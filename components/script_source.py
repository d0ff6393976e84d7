"""Reads the arguments of a Python script from its source; nothing is run."""

from __future__ import annotations

import ast
import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..base.files import is_file, path_exists, read_file
from ..base.modules import parse_source
from ..base.trust import ROOTS
from ..guest.interpreter import choose_job_interpreters
from ..guest.packages import module_path_of
from ..guest.settings import guest_settings
from .model import REQUIRED, Computed
from .sbatch_script import SET_ELSEWHERE
from .script_arguments import LONGEST_NAME, ScriptArgument, is_name, value_type
from .script_evaluator import (
    UNKNOWN,
    Evaluator,
    Function,
    FunctionValue,
    Imported,
    Scope,
    TooSlowError,
    as_default,
    is_plain,
    statements,
)
from .script_hydra import read_hydra
from .script_libraries import Libraries, Parser
from .source import TOO_DEEP

_log = logging.getLogger(__name__)

MAX_BYTES = 400_000
"""A larger file is not read: parsing it takes longer than a person waits."""
_MAX_ARGUMENTS, _MAX_MODULES, _MAX_FOLDERS, _MAX_NOTES, _LONGEST_NOTE = 2_000, 20, 5, 20, 200
_READS_ENVIRONMENT = frozenset({"os.environ.get", "os.getenv", "environ.get", "getenv"})
# Variables that torchrun or another launcher sets.
_SET_BY_LAUNCHER = re.compile(
    r"(?:LOCAL_|GROUP_|NODE_)?RANK|(?:LOCAL_|ROLE_)?WORLD_SIZE|MASTER_(?:ADDR|PORT)|TORCHELASTIC_\w*|JOB_ID"
)
# What a module that declares arguments has in it, and the names that a function which does uses.
_DECLARES = re.compile(rb"add_argument|ArgumentParser|@dataclass|DEFINE_|click\.|typer|flags\.")
_DECLARING = re.compile(
    r"add_arguments?|\w*ArgumentParser|parse_\w*args\w*|set_defaults|DEFINE_\w+|tyro|fire|Fire|typer|click|absl|option|Tap"
)
_LIBRARIES = frozenset(
    {"argparse", "click", "typer", "tyro", "simple_parsing", "fire", "absl", "hydra", "dataclasses", "transformers"}
)
# Dataclasses of other packages that most scripts with HfArgumentParser take, and their modules.
_CLASSES = {
    "TrainingArguments": "transformers.training_args",
    "Seq2SeqTrainingArguments": "transformers.training_args_seq2seq",
    "ModelConfig": "trl.trainer.model_config",
    "ScriptArguments": "trl.scripts.utils",
    **{f"{name.upper()}Config": f"trl.trainer.{name}_config" for name in ("sft", "dpo", "grpo", "kto", "reward")},
}
_ENVIRONMENT, _WORD = re.compile(rb"environ|getenv"), re.compile(r"[A-Za-z_]\w*")
_PARSES = re.compile(rb"\bparse_(?:known_)?args\w*\(|\b(?:fire\.Fire|tyro\.cli|typer\.run|app\.run|HfArgumentParser)\(")


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


def script_docstring(text: bytes) -> str | None:
    """Return the docstring of a script, empty without one; None for a Python file that is no script.

    A script has a `__main__` block, or its top level parses arguments.
    """
    if len(text) > MAX_BYTES or not (b"__main__" in text or b"exec(open(" in text or _PARSES.search(text)):
        return None
    try:
        tree = parse_source(text)
        return (ast.get_docstring(tree) or "") if any(map(_is_of_script, tree.body)) else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # It may be of another version of Python.
        return "" if re.search(rb"^if\s+__name__\s*==", text, re.MULTILINE) else None


def _is_of_script(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return "__name__" in [getattr(name, "id", "") for name in ast.walk(statement.test)]
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any(_PARSES.search(f"{ast.unparse(call.func)}(".encode()) or _is_nanogpt(call) for call in calls)


def _is_nanogpt(node: ast.expr) -> bool:
    """Return whether an expression is `exec(open(...).read())`."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "exec" and "open(" in ast.unparse(node)


def read_script_source(path: Path, folder: Path | None = None) -> ScriptSource:
    """Read a script. What cannot be read is a note.

    Args:
        path: Its file.
        folder: The folder that its imports start from; that of the file if None.

    Raises:
        OSError: The file cannot be read.
    """
    try:
        text = read_file(path, MAX_BYTES)
    except OSError:
        if path.stat().st_size <= MAX_BYTES or not is_file(path):
            raise
        return ScriptSource(notes=[(0, f"it has more than {MAX_BYTES // 1000} kB")])
    return read_script_text(text, path, folder)


def read_script_text(text: bytes, path: Path, folder: Path | None = None) -> ScriptSource:
    """Read the text of a script, as `read_script_source` reads its file."""
    found = ScriptSource()
    try:
        tree = parse_source(text, path)
        found.docstring = ast.get_docstring(tree) or ""
        _Reader(found, tree, text, path, folder or path.parent).read()
    except SyntaxError as error:
        found.notes.append((error.lineno or 0, f"syntax error: {error.msg}"))
    except ValueError as error:
        found.notes.append((0, f"not Python: {error}"))
    except (RecursionError, MemoryError):
        found.notes.append((0, f"it is {TOO_DEEP}"))
    except Exception as error:  # a source can use the libraries in any way; it can be launched all the same
        _log.warning("arguments of %s: %s", path, error, exc_info=True)
        found.notes.append((0, f"its arguments ({type(error).__name__})"))
    return found


class _Reader:
    """Reads one script into a `ScriptSource`."""

    def __init__(self, found: ScriptSource, tree: ast.Module, text: bytes, path: Path, folder: Path) -> None:
        self._found = found
        self._tree, self._text, self._path = tree, text, path
        # A project is often installed, or its root is on PYTHONPATH.
        around = [folder, *folder.parents][:_MAX_FOLDERS]
        roots = (number for number, one in enumerate(around, 1) if any(path_exists(one / root) for root in ROOTS))
        self._folders = around[: next(roots, 1)]
        self._modules: dict[str, Scope | None] = {}
        self._relevant: set[str] = set()
        self._libraries = Libraries(tree, text.decode("utf-8", "replace").splitlines(), self._note)
        self._evaluator = Evaluator(self._libraries.call, self._libraries.decorated, self._resolve, self._is_relevant)
        self._study(tree, text)

    def read(self) -> None:
        """Follow the script; where that finds nothing, follow each of its functions."""
        scope = Scope()
        scope.names["__name__"] = "__main__"
        body = self._tree.body
        # What nanoGPT assigns after it has read the changes is no argument.
        end = next((at for at, line in enumerate(body, 1) if isinstance(line, ast.Expr) and _is_nanogpt(line.value)), 0)
        try:
            self._evaluator.run(body[: end or len(body)], scope)
            if not (self._libraries.parsers or self._libraries.hydra):
                for node in ast.walk(self._tree):
                    is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
                    if is_function and not self._evaluator.is_called(node):
                        self._evaluator.enter(FunctionValue(node, scope))
            self._collect(self._libraries.used(self._evaluator))
        except TooSlowError:
            self._collect([parser for parser in self._libraries.parsers if not parser.is_part])
            self._note(None, "all of its arguments: it is too large")
        for call in self._libraries.hydra:
            arguments, unread = read_hydra(call, self._path, scope)
            self._add(arguments)
            for reason in unread:
                self._note(call.node, reason)
        if end and not self._found.arguments:
            self._add(_constants(scope))
        if _ENVIRONMENT.search(self._text):
            self._add(_variables(self._tree))

    def _collect(self, parsers: Sequence[Parser]) -> None:
        for parser in parsers:
            self._add(_with_defaults(parser))
            if not parser.commands:
                continue
            names = tuple(name for name in parser.commands if is_name(name))
            default = REQUIRED if parser.needs_command else None
            made = value_type("str", optional=not parser.needs_command, choices=names)
            self._add([ScriptArgument(parser.command, "command", made, default, "What the script does")])
            self._add(_of_commands(parser.commands))
            if any(below.commands for below in parser.commands.values()):
                self._note(None, "the subcommands of subcommands")

    def _add(self, arguments: Iterable[ScriptArgument]) -> None:
        taken = {argument.name for argument in self._found.arguments}
        for argument in arguments:
            if not is_name(argument.name) or not all(map(is_name, (flag.lstrip("-") for flag in argument.type.flags))):
                self._note(None, f"the argument {argument.name[:LONGEST_NAME]!r}, whose name cannot be typed")
            elif len(taken) >= _MAX_ARGUMENTS:
                self._note(None, f"more than {_MAX_ARGUMENTS:,} arguments")
                return
            elif argument.name not in taken:
                taken.add(argument.name)
                self._found.arguments.append(argument)

    def _note(self, node: ast.AST | None, what: str) -> None:
        note = getattr(node, "lineno", 0), what[:_LONGEST_NOTE]
        if note not in self._found.notes and len(self._found.notes) < _MAX_NOTES:
            self._found.notes.append(note)

    def _resolve(self, imported: Imported) -> Any:
        """Return the value of a name that a module beside the script has; else the name."""
        module, _, name = imported.path.rpartition(".")
        if name in _CLASSES:
            module = _CLASSES[name]
        elif not module or module.partition(".")[0] in _LIBRARIES:
            return imported
        if (scope := self._module(module.lstrip("."))) is None:
            return imported
        value = scope.names.get(name, imported)
        return value if not isinstance(value, Imported) or value == imported else self._resolve(value)

    def _module(self, name: str) -> Scope | None:
        """Return the names of a module beside the script; None if there is none, or it says nothing of arguments."""
        if name in self._modules:
            return self._modules[name]
        self._modules[name] = None
        if (text := self._module_text(name)) is not None:
            scope = self._modules[name] = Scope()
            scope.names["__name__"] = name
            with suppress(SyntaxError, ValueError):
                tree = parse_source(text)
                self._study(tree, text)
                self._evaluator.run(tree.body, scope)
        return self._modules[name]

    def _module_text(self, name: str) -> bytes | None:
        if len(self._modules) > _MAX_MODULES:
            return None
        if name in _CLASSES.values():
            paths = [self._installed(name)]
        else:
            bases = [folder.joinpath(*name.split(".")) for folder in self._folders]
            paths = [path for base in bases for path in (base.with_suffix(".py"), base / "__init__.py")]
        found = next((path for path in paths if path and path != self._path and is_file(path)), None)
        with suppress(OSError):
            text = read_file(found, MAX_BYTES) if found else b""
            return text if _DECLARES.search(text) else None
        return None

    def _installed(self, module: str) -> Path | None:
        """Return the file of a module in the environment that would run the script."""
        found = choose_job_interpreters(self._path, guest_settings().python)
        return module_path_of(found[0], module) if found else None

    def _study(self, tree: ast.Module, text: bytes) -> None:
        """Find the functions that decide on arguments: by what they name, or by naming such a function."""
        names: dict[str, set[str]] = {}
        lines = text.decode("utf-8", "replace").split("\n")
        for node in statements(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                # Words of the text: a walk over the tree takes several times as long as parsing it.
                body = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                names.setdefault(node.name, set()).update(_WORD.findall(body))
            elif isinstance(node, ast.ImportFrom) and node.module and self._module_text(node.module) is not None:
                self._relevant.update(alias.asname or alias.name for alias in node.names)
        found = True
        while found:
            found = {name for name, inside in names.items() if name not in self._relevant and self._is_named(inside)}
            self._relevant |= found

    def _is_named(self, names: set[str]) -> bool:
        return not self._relevant.isdisjoint(names) or any(map(_DECLARING.fullmatch, names))

    def _is_relevant(self, node: Function) -> bool:
        return getattr(node, "name", "") in self._relevant


def _with_defaults(parser: Parser) -> list[ScriptArgument]:
    """Return the arguments of a parser with the defaults of `set_defaults`, and names that differ."""
    if parser.library == "simple_parsing":
        # It puts the path before the names that several dataclasses have.
        counts = Counter(argument.name for argument in parser.arguments)
        return [
            replace(argument, name=argument.dest, flag=f"--{argument.dest}")
            if counts[argument.name] > 1 and argument.dest
            else argument
            for argument in parser.arguments
        ]
    return [
        replace(argument, default=parser.defaults[argument.dest])
        if not argument.inverts and is_plain(parser.defaults.get(argument.dest, UNKNOWN))
        else argument
        for argument in parser.arguments
    ]


def _of_commands(parsers: Mapping[str, Parser]) -> Iterable[ScriptArgument]:
    """Return the arguments of subcommands; one that several have is one argument."""
    found: dict[str, ScriptArgument] = {}
    for command, parser in parsers.items():
        for argument in _with_defaults(parser):
            needed = (command,) if argument.default is REQUIRED else ()
            if needed:
                argument = replace(argument, default=None, type=replace(argument.type, optional=True))
            known = found.get(argument.name)
            if known is None:
                found[argument.name] = replace(argument, commands=(command,), needed_by=needed)
                continue
            default = known.default if known.default == argument.default else Computed("depends on the subcommand")
            found[argument.name] = replace(
                known, default=default, commands=(*known.commands, command), needed_by=(*known.needed_by, *needed)
            )
    return found.values()


def _constants(scope: Scope) -> Iterable[ScriptArgument]:
    """Yield the constants of a script that runs a file which changes them by `--name=value`, as nanoGPT does."""
    for name, value in scope.names.items():
        if not name.startswith("_") and isinstance(value, (bool, int, float, str)):
            yield ScriptArgument(name, "joined", value_type(type(value).__name__), value, "", f"--{name}")


def _variables(tree: ast.Module) -> Iterable[ScriptArgument]:
    """Yield the variables of the environment that a script reads with a default."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) == 2]
    for node in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        if not isinstance(node.args[0], ast.Constant):
            continue
        name = node.args[0].value
        if not isinstance(name, str) or ast.unparse(node.func) not in _READS_ENVIRONMENT:
            continue
        if SET_ELSEWHERE.fullmatch(name) or _SET_BY_LAUNCHER.fullmatch(name) or not name.isidentifier():
            continue
        default: Any = node.args[1].value if isinstance(node.args[1], ast.Constant) else UNKNOWN
        help = f"The variable {name} of the script's environment"
        text = as_default(default, ast.unparse(node.args[1]))
        yield ScriptArgument(name, "variable", value_type("str", optional=text is None), text, help)
