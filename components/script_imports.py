"""Finds the functions and classes that a script imports, in its own folder and in its environment. Nothing is run."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..base.files import read_file
from .script_syntax import Syntax, TooSlowError
from .source import Definition

FindModule = Callable[[str], Path | None]
_MAX_BYTES = 500_000
_MAX_MODULES, _MAX_EXPORTS = 16, 8
_MAX_SECONDS = 0.2
# A module of the script's folder without these has no arguments.
_HAS_ARGUMENTS = re.compile(rb"add_argument|ArgumentParser|\bdataclass\b|\bclick\.|\bDEFINE_|\btyper\.")


class Imported(NamedTuple):
    """An imported function or class, in the syntax of its module."""

    syntax: Syntax
    node: Definition


class Imports:
    """Reads the modules that a script imports, within a limit of time.

    Args:
        own: Finds a module in the script's folder.
        installed: Finds a module of the script's environment.
    """

    def __init__(self, own: FindModule, installed: FindModule) -> None:
        self._own, self._installed = own, installed
        self._until = 0.0
        self._found: dict[tuple[str, bool], Imported | None] = {}
        self._texts: dict[Path, bytes] = {}
        self._syntaxes: dict[Path, Syntax] = {}

    def find(self, path: str, *, is_declaration: bool) -> Imported | None:
        """Find a function or class; None if it is not found.

        Args:
            path: Its dotted path.
            is_declaration: Whether it is known to declare arguments; others are looked up in the script's folder alone.
        """
        self._until = self._until or time.thread_time() + _MAX_SECONDS
        key = path, is_declaration
        if key not in self._found:
            self._found[key] = None
            with suppress(OSError, SyntaxError, ValueError, RecursionError, MemoryError, TooSlowError):
                self._found[key] = self._find(path, is_declaration, _MAX_EXPORTS)
        return self._found[key]

    def _find(self, path: str, is_declaration: bool, exports: int) -> Imported | None:
        module, _, name = path.rpartition(".")
        if not module or not exports:
            return None
        file = self._own(module)
        is_own = file is not None
        file = file or (self._installed(module) if is_declaration else None)
        text = self._text(file) if file else b""
        if file is None or (is_own and not is_declaration and not _HAS_ARGUMENTS.search(text)):
            return None
        if name.encode() not in text:
            return None
        syntax = self._syntax(file, text, package_of(module, file))
        if node := syntax.definitions.get(name):
            return Imported(syntax, node)
        # A package exports what its modules define, often for type checkers alone.
        source = syntax.path_of(ast.Name(name))
        return self._find(source, is_declaration, exports - 1)

    def _text(self, file: Path) -> bytes:
        if file not in self._texts:
            too_many = len(self._texts) >= _MAX_MODULES or time.thread_time() > self._until
            self._texts[file] = b"" if too_many or file.stat().st_size > _MAX_BYTES else read_file(file, _MAX_BYTES)
        return self._texts[file]

    def _syntax(self, file: Path, text: bytes, package: str) -> Syntax:
        if file not in self._syntaxes:
            self._syntaxes[file] = Syntax(text, file, self._until, package)
        return self._syntaxes[file]


def package_of(module: str, file: Path) -> str:
    """Return the package that the relative imports of a module begin in."""
    return module if file.name == "__init__.py" else module.rpartition(".")[0]
