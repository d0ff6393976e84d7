"""`torchx tui`: the dashboard as a subcommand of TorchX's own command, through its entry points `torchx.cli.cmds`."""

from __future__ import annotations

import argparse
import logging
import sys
from importlib import import_module
from typing import Any

_DESCRIPTION = "Open the dashboard: every job in one table, launch, watch, read logs, learn why, cancel."


class TuiCommand:
    """The subcommand, in the form that TorchX wants one."""

    def add_arguments(self, subparser: argparse.ArgumentParser) -> None:
        """Give its parser the options of the dashboard."""
        from .main import add_dashboard_options

        subparser.description = _DESCRIPTION
        add_dashboard_options(subparser)

    def run(self, args: argparse.Namespace) -> None:
        """Open the dashboard; the process ends with its exit code."""
        from .main import run_arguments

        # TorchX logs to the terminal, which is the dashboard's now.
        for handler in list(logging.root.handlers):
            logging.root.removeHandler(handler)
        sys.exit(run_arguments(args))


def tui_command() -> Any:
    """Return the subcommand; TorchX's base class is named its base, since TorchX asks for that."""
    import_module("torchx.cli.cmd_base").SubCommand.register(TuiCommand)
    return TuiCommand()
