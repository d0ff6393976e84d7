"""The command line of run and dryrun: their flags, the component, and its arguments with flags of ours among them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..specs.errors import ArgumentError

if TYPE_CHECKING:
    from ..components.model import ComponentDoc


class _Once(argparse.Action):
    """Stores a value, and refuses a second one."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option_string: str | None = None
    ) -> None:
        given = namespace.__dict__.setdefault("given_once", [])
        if self.dest in given:
            raise argparse.ArgumentError(self, "given twice")
        given.append(self.dest)
        setattr(namespace, self.dest, values)


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the parser of run its arguments."""
    _add_flags(parser, dryrun_alone=False)
    _add_rest(parser)


def add_dryrun_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the parser of dryrun its arguments."""
    _add_flags(parser, dryrun_alone=True)
    _add_rest(parser)


def _add_rest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "rest",
        nargs=argparse.REMAINDER,
        metavar="COMPONENT [ARGUMENT...]",
        help="such as utils.echo, file.py:function, package.module:function; after it --help shows its arguments",
    )


def _add_flags(parser: argparse.ArgumentParser, *, dryrun_alone: bool) -> list[argparse.Action]:
    def flag(name: str, words: str) -> argparse.Action:
        return parser.add_argument(name, action="store_true", help=words)

    def once(*names: str, metavar: str | None, words: str) -> argparse.Action:
        return parser.add_argument(*names, action=_Once, metavar=metavar, help=words)

    both = [
        once(
            "-s",
            "--scheduler",
            metavar="NAME",
            words="the scheduler; default: the configured one, or the first available",
        ),
        once("-cfg", "--scheduler_args", metavar="K=V,...", words="run options of the scheduler"),
        once(
            "--workspace",
            "--buck-target",
            metavar="PATH",
            words="the folder to ship with the first role; empty for none",
        ),
        parser.add_argument(
            "--set", action="append", metavar="ROLE.FIELD=VALUE", help="change a role, such as trainer.num_replicas=4"
        ),
        once("--parent_run_id", metavar="ID", words="the run that this one belongs to"),
        flag("--ignore-config", "read no .torchxconfig"),
        flag("--stdin", "read what to launch as a JSON object"),
        flag("--json", "print a JSON object"),
        flag("--verbose", "print on stderr which Python runs the component"),
    ]
    if dryrun_alone:
        return both
    return [
        *both,
        flag("--dryrun", "print the request, launch nothing"),
        flag("--wait", "wait until the job ends (the default for local jobs)"),
        flag("--log", "print its logs on stderr while waiting"),
        flag("--tee_logs", "prefix each line with its replica (always on)"),
        flag("--detach", "return at once; the job continues"),
        flag("--notify", "send notifications about the job, as [notify] of config.toml says"),
        flag("--open", "open the dashboard on the job"),
    ]


def flag_names(command: str) -> list[str]:
    """Return the flags of run or dryrun, in their long form."""
    flags = _add_flags(argparse.ArgumentParser(add_help=False), dryrun_alone=command == "dryrun")
    return [next(name for name in flag.option_strings if name.startswith("--")) for flag in flags]


@dataclass
class Rest:
    """What follows the flags of run.

    Attributes:
        component: the component's name.
        words: its own arguments.
        wants_help: its help was asked for.
    """

    component: str
    words: list[str]
    wants_help: bool = False


def read_rest(arguments: Any, default_component: str) -> Rest:
    """Return the component and its arguments; flags of run among these are put into ``arguments``.

    A flag of run is one where the component has no parameter of that name. ``--`` ends that, and so does the first word
    for a component's ``*args``: what follows is the component's.

    Args:
        arguments: what the parser of run made of the command line; it is changed.
        default_component: what is launched where none is named.

    Raises:
        ArgumentError: there is no component at all.
        TorchXTuiError: the component cannot be described.
    """
    words = list(arguments.rest)
    if words[:1] == ["--"]:
        del words[0]
    component = words.pop(0) if words and not words[0].startswith("-") else default_component
    if not component:
        raise ArgumentError("", "name a component, such as utils.echo: `torchx-tui builtins` lists components")
    from ..components.finder import describe

    parser = argparse.ArgumentParser(prog=f"torchx-tui {arguments.command}", add_help=False, allow_abbrev=False)
    flags = _add_flags(parser, dryrun_alone=arguments.command == "dryrun")
    ours, theirs = _parted(words, flags, describe(component))
    wants_help = "--help" in ours
    parser.parse_args([word for word in ours if word != "--help"], arguments)
    return Rest(component, theirs, wants_help)


def _parted(words: Sequence[str], flags: Iterable[argparse.Action], doc: ComponentDoc) -> tuple[list[str], list[str]]:
    """Return which words are flags of run with their values, and which are the component's."""
    from ..components.command_line import flags_of

    theirs_too = {
        flag for parameter in doc.parameters if parameter.kind != "var_positional" for flag in flags_of(parameter)
    }
    takes_words = any(parameter.kind == "var_positional" for parameter in doc.parameters)
    values = {name: action.nargs != 0 for action in flags for name in action.option_strings}
    values["--help"] = False
    ours: list[str] = []
    theirs: list[str] = []
    place = 0
    while place < len(words):
        word = words[place]
        name, sign, _ = word.partition("=")
        if word == "--" or (takes_words and not word.startswith("-")):
            break
        is_theirs = name in theirs_too or name not in values
        has_value = not sign and (name in theirs_too if is_theirs else values[name])
        taken = words[place : place + 2] if has_value else [word]
        (theirs if is_theirs else ours).extend(taken)
        place += len(taken)
    return ours, [*theirs, *words[place:]]
