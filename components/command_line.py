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
from .values import parse_value, split_list, to_text

BOOLEANS = frozenset({"true", "false", "yes", "no", "on", "off", "1", "0"})


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
    if is_python_name(name):
        return _parse_script(name, argv, others, namespace)
    parser = Parser(prog=name, add_help=False, argument_default=argparse.SUPPRESS)
    rest, positionals = "", []
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
    _add_others(parser, others)
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


def _parse_script(
    name: str, argv: Sequence[str], others: Iterable[Option], namespace: Any
) -> dict[str, str | list[str]]:
    """Parse the arguments of a Python script as the script would; those after `--` are passed to it as they are."""
    parameters = describe(name).parameters
    parser = Parser(prog=name, add_help=False, argument_default=argparse.SUPPRESS)
    parser.takes_words = True
    given, flags = list(argv), script_flags(parameters)
    end = given.index("--") if "--" in given else len(given)
    for parameter in parameters:
        if parameter.kind == "var_positional":
            continue
        is_list = parameter.type.kind in ("list", "tuple")
        action: Any = "append" if is_list and parameter.arity == 1 and parameter.kind != "positional" else StoreOnce
        nargs = "+" if is_list and action is StoreOnce else None
        parser.add_argument(*flags[parameter.name], dest=f"{COMPONENT}{parameter.name}", action=action, nargs=nargs)
    _add_others(parser, others)
    parsed = vars(parser.parse_args(_with_values(given[:end], parameters), namespace))
    texts: dict[str, str | list[str]] = {}
    for key, value in parsed.items():
        if key.startswith(COMPONENT):
            # One word may be the text of a list.
            is_text = isinstance(value, str)
            texts[key.removeprefix(COMPONENT)] = value if is_text else value[0] if len(value) == 1 else to_text(value)
    words = [word for word in parser.words if not _is_override(word, parameters, texts)]
    waiting = [item for item in parameters if item.kind == "positional" and item.name not in texts]
    while words and waiting:
        parameter = waiting.pop(0)
        # As in argparse, a list leaves a word for each argument after it that needs one.
        count = max(1, len(words) - sum(item.required for item in waiting)) if parameter.arity == "*" else 1
        count = parameter.arity if isinstance(parameter.arity, int) else count
        texts[parameter.name] = to_text(words[:count]) if count > 1 else words[0]
        words = words[count:]
    if words or given[end + 1 :]:
        texts[parameters[-1].name] = [*words, *given[end + 1 :]]
    return texts


def _add_others(parser: Parser, others: Iterable[Option]) -> None:
    """Add options whose flags are not the component's."""
    taken = set(parser._option_string_actions)
    for names, options in others:
        if free := [flag for flag in names if flag not in taken]:
            parser.add_argument(*free, **options)


def _with_values(argv: Sequence[str], parameters: Sequence[Parameter]) -> list[str]:
    """Give the flags among the words the value that they stand for: `--fp16` is `--fp16=true`."""
    booleans = [parameter for parameter in parameters if parameter.type.kind == "bool"]
    flags = script_flags(parameters)
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


def _is_override(word: str, parameters: Sequence[Parameter], texts: dict[str, str | list[str]]) -> bool:
    """Take a word such as `lr=0.1` as the value of a parameter, as Hydra's command lines have them."""
    key, sign, value = word.partition("=")
    known = next((item for item in parameters if item.name == key and item.part != "launch"), None)
    if not sign or known is None or known.kind != "keyword_only":
        return False
    texts[key] = value
    return True


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


def script_flags(parameters: Sequence[Parameter]) -> dict[str, list[str]]:
    """List the options of each parameter of a Python script; the name of one may be a short form of another."""
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
