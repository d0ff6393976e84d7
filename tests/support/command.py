"""A command of the shell in this process: faster than one of its own, and its faults show here."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from torchx_tui.cli import main as cli


class Screen(io.StringIO):
    """A stream that is a terminal."""

    encoding: Any = "UTF-8"

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        code: its exit code.
        out: what it printed on stdout.
        err: what it printed on stderr.
    """

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Its stdout as JSON."""
        return json.loads(self.out)


Command = Callable[..., Ended]


def command_runner(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return a function that runs a command; loggers of this process stay as they are."""
    monkeypatch.setattr(cli, "log_to_file", lambda debug: None)

    def run(*argv: str) -> Ended:
        capsys.readouterr()
        try:
            code = cli.main(list(argv))
        except SystemExit as ended:  # argparse's way
            code = ended.code if isinstance(ended.code, int) else 1
        printed = capsys.readouterr()
        return Ended(code, printed.out, printed.err)

    return run
