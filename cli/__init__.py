"""The commands of the shell: what the dashboard does, for scripts and for screen readers.

Each command is in the module that the table names, which is imported when that command is run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ..settings.config import Settings

    AddArguments = Callable[[argparse.ArgumentParser], None]
    CarryOut = Callable[[Any, Settings], int]

COMMANDS = {
    "run": ("run", "launch a component"),
    "dryrun": ("run", "print the request that run would send"),
    "list": ("status", "list jobs"),
    "status": ("status", "show a job's state and replicas"),
    "describe": ("status", "show what a job was launched as"),
    "log": ("logs", "print a job's logs"),
    "metrics": ("metrics", "show a job's progress and metrics"),
    "stacks": ("stacks", "show the stacks of all ranks, and which rank holds up the others"),
    "cancel": ("cancel", "stop a job"),
    "delete": ("cancel", "stop a job and delete its records and logs"),
    "wait": ("status", "wait until a job ends"),
    "prune": ("cancel", "delete finished jobs and their logs"),
    "builtins": ("components", "list the builtin components"),
    "runopts": ("components", "list the run options of schedulers"),
    "lint": ("components", "check component files"),
    "configure": ("configure", "write a .torchxconfig"),
    "doctor": ("doctor", "check backends, config, terminal and folders"),
    "completion": ("completion", "print the completion script of a shell"),
}
"""The module of each command, and what it does in words, in the order of the help."""


def _command(name: str) -> tuple[AddArguments, CarryOut]:
    module, _ = COMMANDS[name]
    return import_module(f".{module}", __name__).COMMANDS[name]


def add_arguments(name: str, parser: argparse.ArgumentParser) -> None:
    """Give a command's parser its arguments."""
    add, _ = _command(name)
    add(parser)


def run_command(arguments: Any, settings: Settings) -> int:
    """Carry out a command and return its exit code: 0; 1 where a job did not succeed, or is not known.

    Args:
        arguments: what the command's parser made of the command line.
        settings: what config.toml and the command line chose.

    Raises:
        TorchXTuiError: it could not be carried out.
    """
    _, carry_out = _command(arguments.command)
    return carry_out(arguments, settings)
