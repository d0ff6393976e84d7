"""Ignore files: which files of a project do not travel with a job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

IGNORE_FILES = (".torchxignore", ".dockerignore")
"""Names of ignore files in a project's folder; the first one that exists counts."""


class IgnorePatterns:
    """The patterns of an ignore file: one a line, ``#`` begins a comment, ``!`` takes back, the last match decides.

    A pattern is matched against the path below the project's folder, as `fnmatch` does; what matches a folder matches
    all that is in it.

    Args:
        lines: the lines of the file.
        name: the name of the file.
    """

    def __init__(self, lines: Iterable[str] = (), name: str = "") -> None:
        self.name = name
        texts = [line.strip() for line in lines]
        self._rules = [
            (text.startswith("!"), text.removeprefix("!").strip().removeprefix("./").strip("/"))
            for text in texts
            if text and not text.startswith("#")
        ]
        self.has_negation = any(negated for negated, _ in self._rules)
        """Whether a file in an ignored folder may travel."""

    def is_ignored(self, path: str) -> bool:
        """Return whether a path is ignored.

        Args:
            path: the path below the project's folder, with ``/``.
        """
        return bool(self.rule_for(path))

    def rule_for(self, path: str) -> str:
        """Return the pattern by which a path is ignored; empty if it is not."""
        parts = path.split("/")
        paths = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        rule = ""
        for negated, pattern in self._rules:
            short = pattern.removeprefix("**/")
            if any(fnmatchcase(candidate, form) for candidate in paths for form in (pattern, short)):
                rule = "" if negated else pattern
        return rule


def read_patterns(names: Sequence[str], read: Callable[[str], bytes]) -> IgnorePatterns:
    """Return the patterns of the first of these files that exists, as ``read`` returns it."""
    for name in names:
        try:
            return IgnorePatterns(read(name).decode("utf-8-sig", "replace").splitlines(), name)
        except FileNotFoundError:
            continue
    return IgnorePatterns()
