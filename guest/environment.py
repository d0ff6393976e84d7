"""Inspect a Python environment by reading its files, without running it."""

from __future__ import annotations

import ast
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import Any

from ..base.errors import describe_error
from ..base.files import is_folder, read_file
from ..base.modules import SearchPath, parse_source

_PACKAGE_FOLDERS = ("lib*/{python}/site-packages", "lib/python3/dist-packages", "local/lib/{python}/dist-packages")
_VERSION = re.compile(r"3\.\d+(\.\d+)?")
_MINOR = re.compile(r"python(3\.\d+)$")


class Environment:
    """The environment of an interpreter.

    Args:
        program: The interpreter's path.
    """

    def __init__(self, program: str) -> None:
        path = Path(shutil.which(program) or program).absolute()
        real = Path(os.path.realpath(path))
        prefix, real_prefix = path.parent.parent, real.parent.parent
        self._config = _read_config(prefix / "pyvenv.cfg")
        minor = _MINOR.search(real.name)
        version = _VERSION.match(self._config.get("version", self._config.get("version_info", "")))
        self.version = version[0] if version else minor[1] if minor else ""
        """Such as 3.11.7 or 3.11; empty if unknown."""
        prefixes = [prefix] if self._config else [prefix, real_prefix]
        if self._config.get("include-system-site-packages", "").lower() == "true" and "home" in self._config:
            prefixes.append(Path(self._config["home"]).parent)
        python = f"python{minor[1]}" if minor else "python3*"
        patterns = [pattern.format(python=python) for pattern in _PACKAGE_FOLDERS]
        found = (folder for prefix in prefixes for pattern in patterns for folder in sorted(prefix.glob(pattern)))
        # lib64 is often a link to lib.
        self._folders = list({os.path.realpath(folder): folder for folder in found}.values())

    def search_path(self) -> SearchPath:
        """Return its package folders and the folders that their ``.pth`` files add."""
        mapped: dict[str, str] = {}
        for folder in self._folders:
            for path in sorted(folder.glob("__editable__*_finder.py")):
                mapped |= _read_mapping(path)
        folders = (str(path) for folder in self._folders for path in (folder, *_added(folder)))
        return SearchPath(tuple(dict.fromkeys(folders)), mapped)

    def package_version(self, *names: str) -> str:
        """Return the version of the first package that is installed; empty if none is."""
        folders = self.search_path().folders
        found = (info for name in names for info in _distributions(folders, f"{name.replace('-', '_')}-*"))
        return next((info.stem.partition("-")[2] for info in found), "")


def entry_points(
    folders: Iterable[str], group: str, failed: Callable[[str, str], object] = lambda name, reason: None
) -> Iterator[EntryPoint]:
    """Yield the entry points of a group.

    Args:
        folders: Those that packages are installed in.
        group: Such as `torchx.components`.
        failed: Called with a package whose entry points cannot be read, and the reason.
    """
    for info in _distributions(folders, "*"):
        try:
            yield from _Files(info).entry_points.select(group=group)
        except Exception as error:  # any file that is not INI
            failed(
                info.name.partition("-")[0],
                f"its entry points cannot be read: {describe_error(error)}: install it again",
            )


def _distributions(folders: Iterable[str], pattern: str) -> Iterator[Path]:
    for folder in folders:
        for suffix in (".dist-info", ".egg-info"):
            yield from sorted(Path(folder).glob(f"{pattern}{suffix}"))


class _Files(Distribution):
    """The metadata of a package; files that are too large or not regular count as missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read_text(self, filename: str) -> str | None:
        try:
            return read_file(self._folder / filename).decode("utf-8", "replace")
        except OSError:
            return None

    def locate_file(self, path: Any) -> Any:
        return self._folder.parent / path


def _lines(path: Path) -> list[str]:
    try:
        return read_file(path).decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def _read_config(path: Path) -> dict[str, str]:
    pairs = (line.partition("=") for line in _lines(path))
    return {key.strip().lower(): value.strip() for key, equals, value in pairs if equals}


def _added(folder: Path) -> Iterator[Path]:
    """Yield the folders that ``.pth`` files add; their lines of code are not run."""
    for file in sorted(folder.glob("*.pth")):
        for line in map(str.rstrip, _lines(file)):
            if line and not line.startswith(("#", "import ", "import\t")) and is_folder(folder / line):
                yield folder / line


def _read_mapping(path: Path) -> dict[str, str]:
    """Read the literal ``MAPPING`` of the finder that setuptools writes for an editable install."""
    try:
        for node in parse_source(read_file(path), path).body:
            if not isinstance(node, ast.AnnAssign) or node.value is None:
                continue
            if isinstance(node.target, ast.Name) and node.target.id == "MAPPING":
                found = ast.literal_eval(node.value)
                return {str(name): str(place) for name, place in found.items()}
    except (OSError, ValueError, SyntaxError, AttributeError, RecursionError, MemoryError):
        pass
    return {}
