"""The parser of command lines: argparse with shorter error messages."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from ..specs.errors import ArgumentError

Option = tuple[tuple[str, ...], dict[str, Any]]
"""The names and the keywords of `ArgumentParser.add_argument`."""
_NUMBER = re.compile(r"-\.?\d.*")
COMPONENT = "component."
"""The start of the keys of a component's own arguments, beside those of other options."""


class Parser(argparse.ArgumentParser):
    """Parser that raises `ArgumentError` instead of printing its usage and exiting.

    Attributes:
        takes_words: Whether words that are no options may stand among them; `words` are those of the last call.
    """

    takes_words = False
    words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Parse words and refuse those that are left over."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown and self.takes_words:
            self.words = [word for word in unknown if not word.startswith("-") or _NUMBER.fullmatch(word)]
            unknown = [word for word in unknown if word not in self.words]
        if unknown:
            # The words after an unknown option may be its value, or belong to something else.
            options = [word for word in unknown if word.startswith("-")]
            valid = [action.option_strings[-1] for action in self._actions if action.option_strings]
            near = difflib.get_close_matches((options or unknown)[0].partition("=")[0], valid, cutoff=0.7)
            hint = f"Did you mean {' or '.join(near)}? " if near else ""
            words = " ".join(options or unknown)
            self.error(f"unrecognized arguments: {words}. {hint}Valid options: {', '.join(valid) or 'none'}")
        return parsed, []

    def _get_option_tuples(self, option_string: str) -> Any:
        """Return the options that an abbreviation may mean: only those of components, as in TorchX."""
        found = super()._get_option_tuples(option_string)  # type: ignore[misc]
        return [match for match in found if match[0] is not None and match[0].dest.startswith(COMPONENT)]

    def error(self, message: str) -> NoReturn:
        name = self.prog.removeprefix("torchx-tui").strip()
        raise ArgumentError("", f"{name}: {message}" if name else message)


class StoreOnce(argparse.Action):
    """Stores a value, and rejects a second one."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest, None) is not None:
            raise ArgumentError(self.dest.removeprefix(COMPONENT), f"{option_string} is given twice")
        setattr(namespace, self.dest, values)
