"""Extracts the source of a component as a file of its own: to be copied, changed and launched."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..base.files import SOURCE, is_file, read_file
from .finder import find
from .source import read_source

_SPECS = f"{__name__.rpartition('.components.')[0]}.specs"
_TORCHX_SPECS = "torchx.specs"
# Names that builtins use of `specs` and that TorchX has too. A copy that imports TorchX's is launched by both.
_SHARED_NAMES = frozenset(("NONE", "AppDef", "Resource", "Role", "macros", "parse_mounts", "resource"))


def get_builtin_source(name: str) -> str:
    """Return a component's source with everything that it uses from its file, and the imports.

    A builtin is complete: it includes what it uses from other modules of this package, and `AppDef` and the like are
    TorchX's where that is installed, so that the copy can be launched with either program.

    Args:
        name: The component, such as `utils.echo`.

    Raises:
        ComponentNotFoundException: There is none of the name.
        ComponentLoadError: Its file is not Python.
    """
    component = find(name)
    copy = _Copy(_Module(component.path, component.module), inlines=component.kind == "builtin")
    copy.add(copy.module, component.function)
    return copy.text()


@dataclass(eq=False)
class _Module:
    """A file that statements are taken from.

    Args:
        path: The file.
        name: The module's name, empty for a file.
    """

    path: Path
    name: str

    @cached_property
    def text(self) -> str:
        return read_file(self.path, SOURCE).decode("utf-8-sig")

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """The statements at the top level."""
        return read_source(self.path).tree.body

    @cached_property
    def bound(self) -> dict[str, list[ast.stmt]]:
        """The statements at the top level by the names that they bind."""
        bound: dict[str, list[ast.stmt]] = {}
        for node in self.statements:
            for name in _names_bound_by(node):
                bound.setdefault(name, []).append(node)
        return bound

    def absolute(self, node: ast.ImportFrom) -> str:
        """Return the absolute name of the module that is imported from; as written if the file has no module name."""
        if not node.level or not self.name:
            return "." * node.level + (node.module or "")
        package = self.name.split(".")[: -node.level]
        return ".".join([*package, *([node.module] if node.module else [])])

    def written(self, node: ast.stmt) -> str:
        """Return a statement's text, with its decorators and the comment above it."""
        lines = self.text.splitlines()
        first = min([node.lineno, *(alias.lineno for alias in getattr(node, "decorator_list", ()))]) - 1
        while first and lines[first - 1].startswith("#"):
            first -= 1
        return "\n".join(lines[first : node.end_lineno])


@dataclass
class _Copy:
    """The statements and imports of a component, collected name by name.

    Args:
        module: The component's.
        inlines: Whether statements of other modules of this package are included.
    """

    module: _Module
    inlines: bool
    imports: dict[str, dict[str, None]] = field(default_factory=dict)
    """The imported names by module; none for `import a`."""
    _modules: dict[Path, _Module] = field(default_factory=dict)
    _taken: dict[ast.stmt, _Module] = field(default_factory=dict)

    def add(self, module: _Module, name: str) -> None:
        """Add the statements that bind a name in a module, and everything that they use."""
        for node in module.bound.get(name, ()):
            if isinstance(node, ast.Import):
                self.imports.update({_import_text(alias): {} for alias in node.names if _bound_name(alias) == name})
            elif isinstance(node, ast.ImportFrom):
                self._import_from(module, node, name)
            elif node not in self._taken:
                self._taken[node] = module
                for used in ast.walk(node):
                    if isinstance(used, ast.Name):
                        self.add(module, used.id)

    def _import_from(self, module: _Module, node: ast.ImportFrom, name: str) -> None:
        source = module.absolute(node)
        alias = next(alias for alias in node.names if _bound_name(alias) == name)
        sibling = module.path.with_name(f"{node.module}.py")
        # A module that reads files beside itself works only in its place.
        if (
            self.inlines
            and node.level == 1
            and is_file(sibling)
            and "__file__" not in read_file(sibling, SOURCE).decode()
        ):
            inlined = self._modules.setdefault(sibling, _Module(sibling, source))
            self.add(inlined, alias.name)
        else:
            self.imports.setdefault(source, {})[_import_text(alias)] = None

    def text(self) -> str:
        """Return the file."""
        parts = ["\n".join(self._import_lines()).strip("\n")]
        # Statements of other modules are used when the module runs, so they come first.
        for module in sorted([*self._modules.values(), self.module], key=self._depth):
            parts += [module.written(node) for node in module.statements if self._taken.get(node) is module]
        return "\n\n\n".join(part for part in parts if part)

    def _depth(self, module: _Module) -> int:
        """Return the depth of a module's imports within this package."""
        imports = (node for node in module.statements if isinstance(node, ast.ImportFrom) and node.level == 1)
        used = {module.path.with_name(f"{node.module}.py") for node in imports}
        return 1 + max((self._depth(self._modules[path]) for path in used if path in self._modules), default=0)

    def _import_lines(self) -> Iterator[str]:
        # No name in the text shows that these imports are needed. TorchX reads annotations as types, so the copy of a
        # builtin has no `from __future__ import annotations`.
        if not self.inlines:
            for node in self.module.statements:
                if isinstance(node, ast.ImportFrom) and (node.module == "__future__" or node.names[0].name == "*"):
                    yield ast.unparse(node)
        names = {source: sorted(found, key=_import_sort_key) for source, found in sorted(self.imports.items())}
        specs = names.pop(_SPECS, []) if self.inlines else []
        for source, found in sorted(names.items(), key=lambda item: bool(item[1])):
            yield _import_line(source, found) if found else f"import {source}"
        if specs:
            yield from _specs_lines(specs)


def _specs_lines(names: list[str]) -> Iterator[str]:
    shared = [name for name in names if name in _SHARED_NAMES]
    if ours := [name for name in names if name not in _SHARED_NAMES]:
        yield _import_line(_SPECS, ours)
    if shared:
        torchx, fallback = _import_line(_TORCHX_SPECS, shared), _import_line(_SPECS, shared)
        yield f"\ntry:\n    {torchx}\nexcept ImportError:\n    {fallback}"


def _import_line(source: str, names: list[str]) -> str:
    return f"from {source} import {', '.join(names)}"


def _import_sort_key(name: str) -> tuple[bool, bool, str]:
    """Return a key that sorts names as formatters do: constants, classes, functions."""
    return not name.isupper(), not name[:1].isupper(), name


def _names_bound_by(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement at the top level binds, also inside of `if` and `try`."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (_bound_name(alias) for alias in node.names)
    else:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield from _names_bound_by(child)
            else:
                named = (alias for alias in ast.walk(child) if isinstance(alias, ast.Name))
                yield from (alias.id for alias in named if isinstance(alias.ctx, ast.Store))


def _bound_name(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _import_text(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name
