"""`torchx tui`: the dashboard as a command of TorchX, through its entry points `torchx.cli.cmds`."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import Any

_DESCRIPTION = "Open the dashboard: every job in one table, launch, watch, read logs, learn why, cancel."


class TuiCommand:
    """The command, with the methods of TorchX's `SubCommand`."""

    def add_arguments(self, subparser: argparse.ArgumentParser) -> None:
        from .commands import DASHBOARD, add_options

        subparser.description = _DESCRIPTION
        add_options(subparser, DASHBOARD)

    def run(self, args: argparse.Namespace) -> None:
        """Open the dashboard; the process ends with its exit code."""
        from .main import run_arguments

        sys.exit(run_arguments(lambda: args))


def tui_command() -> Any:
    """Return the command; TorchX requires a subclass of its own `SubCommand`."""
    import_module("torchx.cli.cmd_base").SubCommand.register(TuiCommand)
    return TuiCommand()
