"""Which files of a project stay at home: the patterns of its ignore file."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

IGNORE_FILES = (".torchxignore", ".dockerignore")
"""Names of ignore files in a project's folder; the first one that exists counts."""


class IgnorePatterns:
    """The patterns of an ignore file: one a line, ``#`` begins a comment, ``!`` takes back, the last match decides.

    A pattern is matched against the path below the project's folder, as `fnmatch` does; what matches a folder matches
    all that is in it.

    Args:
        lines: the lines of the file.
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        texts = [line.strip() for line in lines]
        self._rules = [
            (text.startswith("!"), text.removeprefix("!").strip().removeprefix("./").strip("/"))
            for text in texts
            if text and not text.startswith("#")
        ]
        self.takes_back = any(negated for negated, _ in self._rules)
        """Whether a file in an ignored folder may be wanted all the same."""

    def is_ignored(self, path: str) -> bool:
        """Tell whether a path stays at home.

        Args:
            path: the path below the project's folder, with ``/``.
        """
        return bool(self.rule_for(path))

    def rule_for(self, path: str) -> str:
        """Return the pattern that keeps a path at home, empty where it travels."""
        parts = path.split("/")
        paths = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        rule = ""
        for negated, pattern in self._rules:
            short = pattern.removeprefix("**/")
            if any(fnmatchcase(candidate, form) for candidate in paths for form in (pattern, short)):
                rule = "" if negated else pattern
        return rule
