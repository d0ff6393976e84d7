"""The commands: what each is called, takes and runs."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import __version__
from ..components.parser import Option, Parser, StoreOnce
from ..settings.choices import FRAMES_PER_SECOND, FRAMES_WORDS, THEMES
from .output import terminal_width

if TYPE_CHECKING:
    from ..settings.config import Settings

NOT_IN_TIME = 124
"""Exit code of `wait` for a job that has not ended in time, as of timeout(1)."""
_WIDEST_HELP = 120


class Command(NamedTuple):
    """A command.

    Attributes:
        help: what it does.
        function: its function in this package, which takes the parsed arguments and the settings.
        options: its arguments; those of a list exclude each other.
        epilog: the end of its help.
    """

    help: str
    function: str
    options: tuple[Any, ...]
    epilog: str | None = None


def option(*names: str, **keywords: Any) -> Option:
    return names, keywords


def flag(name: str, words: str) -> Option:
    return option(name, action="store_true", help=words)


def once(*names: str, **keywords: Any) -> Option:
    return option(*names, action=StoreOnce, **keywords)


def number(
    words: str, low: float = 0, end: float = math.inf, convert: Callable[[str], float] = float
) -> Callable[[str], float]:
    """Return a parser of numbers from ``low`` to less than ``end``; ``words`` say what is valid."""

    def parse(text: str) -> float:
        with suppress(ValueError):
            if low <= (value := convert(text)) < end:
                return value
        raise argparse.ArgumentTypeError(f"{text}: {words}")

    return parse


DASHBOARD = (
    option("--config", metavar="FILE", help="read settings from this file instead of config.toml"),
    option("--profile", metavar="NAME", help="launch with the defaults of this profile of config.toml"),
    flag("--debug", "write tracebacks and details to the log file"),
    option("--read-only", action="store_const", const=True, help="refuse actions that change a job"),
    option("--theme", choices=THEMES, help="colours of the dashboard"),
    option("--ascii", action="store_const", const=True, help="draw with ASCII characters only"),
    option(
        "--fps",
        dest="frames_per_second",
        type=number(FRAMES_WORDS, FRAMES_PER_SECOND.start, FRAMES_PER_SECOND.stop, int),
        metavar="N",
        help="draw at most N times a second, from 30 to 240",
    ),
    option("--no-mouse", dest="mouse", action="store_const", const=False, help="do not use the mouse"),
)
HANDLE = option("handle")
JSON = flag("--json", "print JSON")
RUN_OPTIONS = ("-cfg", "--scheduler_args")
LAUNCH = (
    once(
        "-s",
        "--scheduler",
        dest="scheduler",
        metavar="NAME",
        help="the scheduler; default: the configured one, or the first available",
    ),
    once(*RUN_OPTIONS, dest="scheduler_args", metavar="K=V,...", help="run options of the scheduler"),
    once(
        "--buck-target",
        "--workspace",
        dest="workspace",
        metavar="PATH",
        help="the folder to ship with the first role; empty for none",
    ),
    option("--set", action="append", metavar="ROLE.FIELD=VALUE", help="change a role, such as trainer.num_replicas=4"),
    once("--parent_run_id", metavar="ID", help="the run that this one belongs to"),
    flag("--ignore-config", "read no .torchxconfig"),
    flag("--stdin", "read what to launch as a JSON object"),
    JSON,
    flag("--verbose", "print on stderr which Python runs the component"),
)
COMPONENT = option(
    "rest",
    nargs=argparse.REMAINDER,
    metavar="COMPONENT [ARGUMENT...]",
    help="such as train.py, utils.echo, file.py:function, package.module:function; after it --help shows its arguments",
)
# All words after it are the module's; `make_launch` puts both together.
MODULE = option("-m", nargs=argparse.REMAINDER, dest="module", metavar="MODULE", help="launch a module as a script")
COMMANDS = {
    "run": Command(
        "launch a component",
        "run.run",
        (
            *LAUNCH,
            flag("--dryrun", "print the request, launch nothing"),
            flag("--wait", "wait until the job ends (the default for local jobs)"),
            flag("--log", "print its logs on stderr while waiting"),
            flag("--tee_logs", "prefix each line with its replica (always on)"),
            flag("--detach", "return at once; the job continues"),
            flag("--notify", "send notifications about the job, as [notify] of config.toml says"),
            flag("--open", "open the dashboard on the job"),
            MODULE,
            COMPONENT,
        ),
    ),
    "dryrun": Command("print the request that run would send", "run.dryrun", (*LAUNCH, MODULE, COMPONENT)),
    "list": Command(
        "list jobs",
        "status.list_jobs",
        (
            option("-s", "--scheduler", help="only the jobs of this scheduler"),
            option(*RUN_OPTIONS, metavar="K=V,...", help="run options of the scheduler, such as a namespace"),
            flag("--wide", "show time, nodes, and the progress of running jobs by their logs, as a wide terminal does"),
            JSON,
        ),
    ),
    "status": Command(
        "show a job's state and replicas",
        "status.status",
        (HANDLE, option("--roles", default="", metavar="A,B", help="only these roles"), JSON),
    ),
    "describe": Command(
        "show what a job was launched as",
        "status.describe",
        (HANDLE, flag("--json", "print JSON, with the values of secrets")),
    ),
    "log": Command(
        "print a job's logs",
        "logs.log",
        (
            option("--regex", help="only lines that match"),
            option(
                "-n",
                "--lines",
                type=number("give a number of lines, such as 50", 0, 1 << 60, int),
                metavar="N",
                help="begin with the last N lines of each replica; default: all",
            ),
            option("-t", "--tail", action="store_true", help="follow until the job ends"),
            option(
                "--streams",
                choices=("stdout", "stderr", "combined"),
                help="the stream to print; default: the scheduler's choice",
            ),
            flag("--json", "print each line as a JSON object: role, replica, line"),
            option("handle", metavar="HANDLE[/ROLE[/REPLICA,...]]"),
        ),
    ),
    "metrics": Command(
        "show a job's progress and metrics",
        "metrics.metrics",
        (
            option("handle", nargs="?", help="the job"),
            option("names", nargs="*", metavar="NAME", help="only these metrics; * matches any text"),
            option("--file", metavar="LOG", help="read a log file, or a metric file, instead of a job"),
            [
                flag("--json", "print JSON, with every point that is kept"),
                flag("--csv", "print a row for each point: metric, step, time, value"),
                flag("--plot", "print a chart of each metric; of the loss if none is named"),
            ],
            option(
                "--smoothing",
                choices=("none", "light", "strong"),
                default="light",
                help="smoothing of charts from 50 points on; default: light",
            ),
        ),
    ),
    "stacks": Command(
        "show the stacks of all ranks, and which rank blocks the others",
        "stacks.stacks",
        (
            HANDLE,
            option("--role", default="", help="the role; default: the first"),
            flag("--once", "read the stacks once, without checking for progress"),
            flag("--native", "include frames of C and C++; pauses each rank for seconds; implies --once"),
            flag("--all", "print the frames of every rank, not of one rank per group"),
            JSON,
        ),
    ),
    "cancel": Command("stop a job", "cancel.cancel", (HANDLE,)),
    "delete": Command("stop a job and delete its records and logs", "cancel.delete", (HANDLE,)),
    "wait": Command(
        "wait until a job ends",
        "status.wait",
        (
            HANDLE,
            option(
                "--timeout",
                type=number("give a number of seconds, such as 60 or 0.5"),
                metavar="SECONDS",
                help=f"stop waiting after this number of seconds; the exit code is {NOT_IN_TIME}",
            ),
            JSON,
        ),
    ),
    "prune": Command(
        "delete finished jobs and their logs",
        "cancel.prune",
        (
            option("-s", "--scheduler", default="local_cwd", help="the scheduler; default: local_cwd"),
            option(
                "--older-than",
                type=number("give a number of days, such as 7 or 0.5"),
                metavar="DAYS",
                help="delete jobs that ended earlier; default: keep_days and keep_gigabytes of config.toml",
            ),
            flag("--dryrun", "print what would be deleted, delete nothing"),
        ),
    ),
    "builtins": Command(
        "list the builtin components",
        "components.builtins",
        (option("--print", metavar="NAME", help="print the source of a component's file"), JSON),
    ),
    "runopts": Command(
        "list the run options of schedulers",
        "components.runopts",
        (option("scheduler", nargs="?", help="the scheduler; default: all"), JSON),
    ),
    "lint": Command(
        "check component files",
        "components.lint",
        (option("files", nargs="+", metavar="FILE[:FUNCTION]", help="a file, or one component of it"), JSON),
    ),
    "configure": Command(
        "write a .torchxconfig",
        "configure.configure",
        (
            option("-s", "--schedulers", metavar="A,B", help="the schedulers; default: all"),
            option("-a", "--all", action="store_true", help="write all run options, not only required ones"),
            flag("--print", "print the file instead of writing .torchxconfig"),
            flag("--force", "replace a .torchxconfig; the old one is kept beside it"),
        ),
    ),
    "cluster": Command(
        "show what is free on each backend",
        "cluster.cluster",
        (
            option("-s", "--scheduler", metavar="NAME", help="only this scheduler"),
            flag("--starts", "also estimate when a job of one task would start: a request for each partition"),
            JSON,
        ),
    ),
    "doctor": Command(
        "check backends, config, terminal and folders",
        "doctor.doctor",
        (JSON, flag("--notify", "send a test message as [notify] says, and say what failed")),
    ),
    "completion": Command(
        "print the completion script of a shell",
        "completion.completion",
        (option("shell", choices=("bash", "zsh", "fish")),),
        """how to install it, in the shell's own start file:
  bash  eval "$(torchx-tui completion bash)"                 in ~/.bashrc
  zsh   eval "$(torchx-tui completion zsh)"                  in ~/.zshrc, after compinit
  fish  torchx-tui completion fish | source                  in ~/.config/fish/config.fish""",
    ),
}
"""The commands, in the order of the help."""


def build_parser(words: Collection[str] | None = None) -> argparse.ArgumentParser:
    """Build the parser of the command line.

    Args:
        words: the words that it will parse: only the commands among them get their arguments; None for all.
    """
    parser = Parser(
        prog="torchx-tui",
        description="A full-screen dashboard for training jobs. Without a command, it opens the dashboard.",
        formatter_class=help_formatter,
    )
    parser.add_argument("--version", action="version", version=f"torchx-tui {__version__}")
    add_options(parser, DASHBOARD)
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", prog=parser.prog)
    for name, command in COMMANDS.items():
        description = f"{command.help[0].upper()}{command.help[1:]}."
        one = parsers.add_parser(
            name,
            help=command.help,
            description=description,
            epilog=command.epilog,
            formatter_class=help_formatter,
        )
        if words is None or name in words:
            add_options(one, command.options)
    return parser


def help_formatter(prog: str) -> argparse.HelpFormatter:
    # Without a width argparse imports shutil, which takes milliseconds.
    return argparse.RawDescriptionHelpFormatter(prog, width=min(_WIDEST_HELP, terminal_width()) - 2)


def add_options(parser: Any, options: Iterable[Any]) -> None:
    """Add options; those of a list exclude each other."""
    for one in options:
        if isinstance(one, list):
            add_options(parser.add_mutually_exclusive_group(), one)
        else:
            parser.add_argument(*one[0], **one[1])


def flag_names(command: str) -> list[str]:
    """Return the options of `run` or `dryrun` in their long form."""
    return [names[-1] for names, _ in launch_options(command)]


def launch_options(command: str) -> tuple[Option, ...]:
    """Return the options of `run` or `dryrun` that may also follow the component."""
    return COMMANDS[command].options[:-2]


def run_command(arguments: Any, settings: Settings) -> int:
    """Run a command and return its exit code: 0; 1 if a job failed or does not exist.

    Raises:
        TorchXTuiError: it cannot be carried out.
    """
    module, _, function = COMMANDS[arguments.command].function.partition(".")
    return getattr(import_module(f".{module}", __package__), function)(arguments, settings)
