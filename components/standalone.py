"""The source of a component as a file of its own: to be copied, changed and launched."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..specs.files import SOURCE, read_file
from .finder import find
from .source import read_source

_SPECS = f"{__name__.rpartition('.components.')[0]}.specs"
_TORCHX_SPECS = "torchx.specs"
# What builtins take of `specs` and TorchX has under the same name. A copy that uses TorchX's is launched by both.
_TORCHX_NAMES = frozenset(("NONE", "AppDef", "Resource", "Role", "macros", "parse_mounts", "resource"))


def get_builtin_source(name: str) -> str:
    """Return a component's source with all that it uses of its file, and the imports for it.

    A builtin is complete: what it uses of other modules of this package stands there too, and `AppDef` and the like are
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
        found: dict[str, list[ast.stmt]] = {}
        for node in self.statements:
            for name in _bound_by(node):
                found.setdefault(name, []).append(node)
        return found

    def absolute(self, node: ast.ImportFrom) -> str:
        """Return the name of the module that is imported from; of a file without a name as it is written."""
        if not node.level or not self.name:
            return "." * node.level + (node.module or "")
        package = self.name.split(".")[: -node.level]
        return ".".join([*package, *([node.module] if node.module else [])])

    def written(self, node: ast.stmt) -> str:
        """Return a statement's text, with its decorators and the comment above it."""
        lines = self.text.splitlines()
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))]) - 1
        while first and lines[first - 1].startswith("#"):
            first -= 1
        return "\n".join(lines[first : node.end_lineno])


@dataclass
class _Copy:
    """What a component needs, collected name by name.

    Args:
        module: The component's.
        inlines: Whether the statements of other modules of this package are taken as well.
    """

    module: _Module
    inlines: bool
    imports: dict[str, dict[str, None]] = field(default_factory=dict)
    """The names by the module that they are imported from; of `import a` none."""
    _modules: dict[Path, _Module] = field(default_factory=dict)
    _taken: dict[ast.stmt, _Module] = field(default_factory=dict)

    def add(self, module: _Module, name: str) -> None:
        """Take the statements that bind a name in a module, and all that they use."""
        for node in module.bound.get(name, ()):
            if isinstance(node, ast.Import):
                self.imports.update({_alias(one): {} for one in node.names if _root(one) == name})
            elif isinstance(node, ast.ImportFrom):
                self._import_from(module, node, name)
            elif node not in self._taken:
                self._taken[node] = module
                for used in ast.walk(node):
                    if isinstance(used, ast.Name):
                        self.add(module, used.id)

    def _import_from(self, module: _Module, node: ast.ImportFrom, name: str) -> None:
        source = module.absolute(node)
        one = next(one for one in node.names if _root(one) == name)
        sibling = module.path.with_name(f"{node.module}.py")
        # What looks for files beside itself works where it is.
        if (
            self.inlines
            and node.level == 1
            and sibling.is_file()
            and "__file__" not in read_file(sibling, SOURCE).decode()
        ):
            made = self._modules.setdefault(sibling, _Module(sibling, source))
            self.add(made, one.name)
        else:
            self.imports.setdefault(source, {})[_alias(one)] = None

    def text(self) -> str:
        """Return the file."""
        parts = ["\n".join(self._import_lines()).strip("\n")]
        # What other modules give is used when a module is run, so it comes first.
        for module in sorted([*self._modules.values(), self.module], key=self._depth):
            parts += [module.written(node) for node in module.statements if self._taken.get(node) is module]
        return "\n\n\n".join(part for part in parts if part)

    def _depth(self, module: _Module) -> int:
        """Return how many modules of this package a module stands on."""
        imports = (node for node in module.statements if isinstance(node, ast.ImportFrom) and node.level == 1)
        used = {module.path.with_name(f"{node.module}.py") for node in imports}
        return 1 + max((self._depth(self._modules[path]) for path in used if path in self._modules), default=0)

    def _import_lines(self) -> Iterator[str]:
        # Nothing names what these give. TorchX reads annotations as types, which they are without the first one.
        if not self.inlines:
            for node in self.module.statements:
                if isinstance(node, ast.ImportFrom) and (node.module == "__future__" or node.names[0].name == "*"):
                    yield ast.unparse(node)
        names = {source: sorted(found, key=_order) for source, found in sorted(self.imports.items())}
        specs = names.pop(_SPECS, []) if self.inlines else []
        for source, found in sorted(names.items(), key=lambda item: bool(item[1])):
            yield _from(source, found) if found else f"import {source}"
        if specs:
            yield from _specs_lines(specs)


def _specs_lines(names: list[str]) -> Iterator[str]:
    shared = [name for name in names if name in _TORCHX_NAMES]
    if ours := [name for name in names if name not in _TORCHX_NAMES]:
        yield _from(_SPECS, ours)
    if shared:
        yield f"\ntry:\n    {_from(_TORCHX_SPECS, shared)}\nexcept ImportError:\n    {_from(_SPECS, shared)}"


def _from(source: str, names: list[str]) -> str:
    return f"from {source} import {', '.join(names)}"


def _order(name: str) -> tuple[bool, bool, str]:
    """Return what sorts names as formatters do: constants, classes, functions."""
    return not name.isupper(), not name[:1].isupper(), name


def _bound_by(node: ast.stmt) -> Iterator[str]:
    """Give the names that a statement at the top level binds, those inside of `if` and `try` too."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (_root(one) for one in node.names)
    else:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield from _bound_by(child)
            else:
                named = (one for one in ast.walk(child) if isinstance(one, ast.Name))
                yield from (one.id for one in named if isinstance(one.ctx, ast.Store))


def _root(one: ast.alias) -> str:
    return one.asname or one.name.partition(".")[0]


def _alias(one: ast.alias) -> str:
    return f"{one.name} as {one.asname}" if one.asname else one.name
