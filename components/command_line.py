"""Parses and formats the arguments of `torchx run COMPONENT ...`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..specs.errors import ArgumentError
from .finder import describe
from .model import Parameter
from .parser import COMPONENT, Option, Parser, StoreOnce


def parse_command_line(
    name: str, argv: Sequence[str], others: Iterable[Option] = (), namespace: Any = None
) -> dict[str, str | list[str]]:
    """Parse a command line to texts by parameter; absent ones are left out.

    Args:
        name: The component.
        argv: The words after the component: `--name value`, `--name=value`, `-x value`; the rest goes to the
            arguments of a script that have names and are not given by them, and to `*args`.
        others: Options that may stand among the component's; where both have a flag, it is the component's.
        namespace: The object that gets the values of these.

    Raises:
        ArgumentError: An option is unknown, given twice or of two parameters, or a value is missing.
        TorchXTuiError: As for `describe`.
    """
    parser = Parser(prog=name, add_help=False, argument_default=argparse.SUPPRESS)
    rest, positionals, flags = "", [], set()
    for parameter in describe(name).parameters:
        dest = f"{COMPONENT}{parameter.name}"
        if parameter.kind == "positional":
            positionals.append(parameter.name)
        if parameter.kind == "var_positional":
            rest = parameter.name
            parser.add_argument(dest, nargs=argparse.REMAINDER)
        else:
            try:
                parser.add_argument(*flags_of(parameter), dest=dest, action=StoreOnce)
            except argparse.ArgumentError as error:
                fault = f"{error.message}: another parameter of {name} has it too. Change the flags in its annotation"
                raise ArgumentError(parameter.name, fault) from error
            flags.update(flags_of(parameter))
    for names, options in others:
        if free := [flag for flag in names if flag not in flags]:
            parser.add_argument(*free, **options)
    parsed = vars(parser.parse_args(list(argv), namespace))
    texts = {key.removeprefix(COMPONENT): parsed[key] for key in parsed if key.startswith(COMPONENT)}
    words: list[str] = texts.pop(rest, [])
    if words[:1] == ["--"]:
        words = words[1:]
    for key in positionals:
        if words and key not in texts:
            texts[key] = words.pop(0)
    if words:
        texts[rest] = words
    return texts


def to_command_line(
    name: str, arguments: Mapping[str, str | Sequence[str]], parameters: Sequence[Parameter] | None = None
) -> list[str]:
    """Format arguments as `parse_command_line` parses them; the caller quotes them for a shell.

    Args:
        name: The component.
        arguments: Texts by parameter.
        parameters: The component's parameters, if they are known; its file is not read then.

    Raises:
        TorchXTuiError: As for `describe`.
    """
    from .values import parse_value, to_text

    argv: list[str] = []
    rest: list[str] = []
    for parameter in describe(name).parameters if parameters is None else parameters:
        if parameter.name not in arguments:
            continue
        text = arguments[parameter.name]
        if parameter.kind == "var_positional":
            rest = [str(word) for word in parse_value(parameter, text)]
            continue
        word = to_text(text)
        flag = flags_of(parameter)[0]
        if word.startswith("-"):
            argv.append(f"--{parameter.name}={word}")
        else:
            argv += [flag, word]
    return [*argv, *(["--"] if rest[:1] and rest[0].startswith("-") else []), *rest]


def flags_of(parameter: Parameter) -> list[str]:
    """List the options of a parameter on a command line, the short form first."""
    short = list(parameter.type.flags)
    if not short and len(parameter.name) == 1:
        short = [f"-{parameter.name}"]
    return [*short, f"--{parameter.name}"]
