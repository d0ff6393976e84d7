"""``--changed``: only the tests of what differs from main, for `make check`.

A file of tests is chosen where it or its table (x.yaml of test_x.py) was changed, where it imports a module that was,
or where it imports a module of the same folder that imports such a module. What is reached by longer ways is left to
`make test`.
"""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
_PACKAGE = "torchx_tui"
# Files whose tests take long, and what always holds.
_LEFT_OUT, _ALWAYS = ("e2e", "interop", "snapshots"), "tests/test_walls.py"


class Changed:
    """Leaves out all tests but those of what was changed."""

    def __init__(self) -> None:
        files = changed_files()
        self._files = files | {Path(one).with_name(f"test_{Path(one).stem}.py").as_posix() for one in files}
        self._modules = modules_of(files)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave a file of tests out."""
        if not collection_path.match("test_*.py"):
            return None
        name = collection_path.relative_to(ROOT).as_posix()
        if name in self._files or name == _ALWAYS:
            return None
        return Path(name).parts[1] in _LEFT_OUT or self._modules.isdisjoint(imports_of(collection_path)) or None

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave slow tests out."""
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


def changed_files() -> set[str]:
    """Return the paths, from the root, of files that differ from main or are not in it."""
    for main in ("origin/main", "main"):
        base = _git("merge-base", "HEAD", main)
        if base:
            break
    differ = _git("diff", "--name-only", "--no-renames", *base)
    return {*differ, *_git("ls-files", "--others", "--exclude-standard")}


def modules_of(files: set[str]) -> set[str]:
    """Return the modules of changed files, and those beside them that import them."""
    graph = grimp.build_graph(_PACKAGE)
    found = set()
    for file in files:
        path = Path(file)
        if path.suffix != ".py":
            continue
        if path.parts[0] == "tests":
            found.add(".".join(path.with_suffix("").parts[1:]))
            continue
        module = ".".join((_PACKAGE, *path.with_suffix("").parts)).removesuffix(".__init__")
        found.add(module)
        if module in graph.modules:
            beside = module.rpartition(".")[0]
            importers = graph.find_modules_that_directly_import(module)
            found.update(one for one in importers if one.rpartition(".")[0] == beside)
    return found


def imports_of(path: Path) -> set[str]:
    """Return the modules that a file of tests imports, by their absolute names."""
    beside = ".".join(path.parent.relative_to(ROOT / "tests").parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = ".".join(filter(None, (beside if node.level else "", node.module)))
            found.update((module, *(f"{module}.{name.name}" for name in node.names)))
    return found


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []
