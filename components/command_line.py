"""Parses and formats the arguments of `torchx run COMPONENT ...`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..specs.errors import ArgumentError
from .finder import describe
from .model import Parameter
from .parser import COMPONENT, Option, Parser, StoreOnce
from .python_script import is_python_name
from .values import Texts, parse_value, split_list, to_text

GivenTexts = dict[str, str | list[str]]
"""The texts that were given for parameters; those of `*args` are words."""
BOOLEANS = frozenset({"true", "false", "yes", "no", "on", "off", "1", "0"})


def parse_command_line(
    name: str, argv: Sequence[str], others: Iterable[Option] = (), namespace: Any = None
) -> GivenTexts:
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
    parameters, is_script = describe(name).parameters, is_python_name(name)
    flags = flags_by_name(name, parameters)
    parser = Parser(prog=name, add_help=False, argument_default=argparse.SUPPRESS)
    parser.takes_words = is_script
    words, after = list(argv), []
    if is_script:
        # What follows `--` is passed to the script as it is.
        end = words.index("--") if "--" in words else len(words)
        words, after = _with_values(words[:end], parameters, flags), words[end + 1 :]
    rest = ""
    for parameter in parameters:
        dest = f"{COMPONENT}{parameter.name}"
        if parameter.kind == "var_positional":
            rest = parameter.name
            if not is_script:
                parser.add_argument(dest, nargs=argparse.REMAINDER)
            continue
        is_list = is_script and parameter.type.kind in ("list", "tuple")
        action: Any = "append" if is_list and parameter.arity == 1 and parameter.kind != "positional" else StoreOnce
        nargs = "+" if is_list and action is StoreOnce else None
        try:
            parser.add_argument(*flags[parameter.name], dest=dest, action=action, nargs=nargs)
        except argparse.ArgumentError as error:
            fault = f"{error.message}: another parameter of {name} has it too. Change the flags in its annotation"
            raise ArgumentError(parameter.name, fault) from error
    _add_others(parser, others)
    parsed = vars(parser.parse_args(words, namespace))
    given = {key.removeprefix(COMPONENT): parsed[key] for key in parsed if key.startswith(COMPONENT)}
    words = [*parser.words, *given.pop(rest, ())]
    if words[:1] == ["--"]:
        del words[0]
    # One word may be the text of a list.
    texts: GivenTexts = {
        key: value if isinstance(value, str) else value[0] if len(value) == 1 else to_text(value)
        for key, value in given.items()
    }
    if is_script:
        words = [word for word in words if not _is_override(word, parameters, texts)]
    waiting = [item for item in parameters if item.kind == "positional" and item.name not in texts]
    while words and waiting:
        parameter = waiting.pop(0)
        # As in argparse, a list leaves a word for each argument after it that needs one.
        count = max(1, len(words) - sum(item.required for item in waiting)) if parameter.arity == "*" else 1
        count = parameter.arity if isinstance(parameter.arity, int) else count
        texts[parameter.name] = to_text(words[:count]) if count > 1 else words[0]
        words = words[count:]
    if words or after:
        texts[rest] = [*words, *after]
    return texts


def _add_others(parser: Parser, others: Iterable[Option]) -> None:
    """Add options whose flags are not the component's."""
    taken = set(parser._option_string_actions)
    for names, options in others:
        if free := [flag for flag in names if flag not in taken]:
            parser.add_argument(*free, **options)


def _with_values(argv: Sequence[str], parameters: Sequence[Parameter], flags: Mapping[str, list[str]]) -> list[str]:
    """Give the flags among the words the value that they stand for: `--fp16` is `--fp16=true`."""
    booleans = [parameter for parameter in parameters if parameter.type.kind == "bool"]
    on = {flag: parameter.name for parameter in booleans for flag in flags[parameter.name]}
    off = {parameter.off: parameter.name for parameter in booleans if parameter.off}
    words: list[str] = []
    for word, following in zip(argv, [*argv[1:], ""]):  # noqa: B905 - the last has none
        if word in off and word not in on:
            words.append(f"--{off[word]}=false")
        elif word in on and following.lower() not in BOOLEANS:
            words.append(f"--{on[word]}=true")
        else:
            words.append(word)
    return words


def _is_override(word: str, parameters: Sequence[Parameter], texts: GivenTexts) -> bool:
    """Take a word such as `lr=0.1` as the value of a parameter, as Hydra's command lines have them."""
    key, sign, value = word.partition("=")
    known = next((item for item in parameters if item.name == key and item.part != "launch"), None)
    if not sign or known is None or known.kind != "keyword_only":
        return False
    texts[key] = value
    return True


def to_command_line(name: str, arguments: Texts, parameters: Sequence[Parameter] | None = None) -> list[str]:
    """Format arguments as `parse_command_line` parses them; the caller quotes them for a shell.

    Args:
        name: The component.
        arguments: Texts by parameter.
        parameters: The component's parameters, if they are known; its file is not read then.

    Raises:
        TorchXTuiError: As for `describe`.
    """
    argv: list[str] = []
    rest: list[str] = []
    is_script = is_python_name(name)
    for parameter in describe(name).parameters if parameters is None else parameters:
        if parameter.name not in arguments:
            continue
        text = arguments[parameter.name]
        if parameter.kind == "var_positional":
            rest = [str(word) for word in parse_value(parameter, text)]
            continue
        word = to_text(text)
        flag = f"--{parameter.name}" if is_script else flags_of(parameter)[0]
        if parameter.arity == 0 and word.lower() in BOOLEANS:
            value = parse_value(parameter, word)
            argv.append(flag if value else parameter.off or f"--{parameter.name}=false")
        elif parameter.arity == "*" and is_script and len(items := split_list(word)) > 1:
            argv += [flag, *items]
        elif word.startswith("-"):
            argv.append(f"--{parameter.name}={word}")
        else:
            argv += [flag, word]
    needs_end = rest and (is_script or rest[0].startswith("-"))
    return [*argv, *(["--"] if needs_end else []), *rest]


def flags_by_name(name: str, parameters: Sequence[Parameter]) -> dict[str, list[str]]:
    """List the options of each parameter of a component; the name of one of a script may be a short form of another."""
    if not is_python_name(name):
        return {parameter.name: flags_of(parameter) for parameter in parameters}
    taken = {f"--{parameter.name}" for parameter in parameters}
    flags: dict[str, list[str]] = {}
    for parameter in parameters:
        short = [flag for flag in parameter.type.flags if flag not in taken]
        taken.update(short)
        flags[parameter.name] = [*short, f"--{parameter.name}"]
    return flags


def flags_of(parameter: Parameter) -> list[str]:
    """List the options of a parameter on a command line, the short form first."""
    short = list(parameter.type.flags)
    if not short and len(parameter.name) == 1:
        short = [f"-{parameter.name}"]
    return [*short, f"--{parameter.name}"]
