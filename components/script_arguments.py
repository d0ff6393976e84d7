"""An argument of a Python script: the parameter that it is here, and the words that give it to the script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..specs.errors import ArgumentError
from .model import PRIMITIVES, REQUIRED, Parameter, ValueType
from .values import checked_value, parse_value, split_list, to_text

Style = Literal["option", "joined", "positional", "override", "command", "variable"]
LONGEST_NAME = 100
_MAX_WORDS = 100
# What Hydra's grammar takes without quotes; brackets and quotes are Hydra's own syntax.
_PLAIN_OVERRIDE = re.compile(r"[\[{'\"].*|[\w./\\+$%*@?|:-]+(?: +[\w./\\+$%*@?|:-]+)*", re.DOTALL)


@dataclass(frozen=True)
class ScriptArgument(Parameter):
    """One argument of a script: a parameter, and how it is given to the script.

    Args:
        style: `--lr 1` (option), `--lr=1` (joined), `1` (positional), `lr=1` (override, of Hydra), the name of a
            subcommand, or a variable of the environment.
        flag: Its option.
        repeats: Whether the option is repeated for each item of a list, or for each unit of a count.
        booleans: The words for False and True, where it takes a word.
        commands: The subcommands that it belongs to; empty if it precedes them or there are none.
        needed_by: The subcommands that require it.
    """

    style: Style = "option"
    flag: str = ""
    repeats: bool = False
    booleans: tuple[str, str] = ("False", "True")
    commands: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()

    def is_changed(self, text: str) -> bool:
        """Return whether a text differs from the default. Raises ArgumentError if it is no value of the type."""
        default = to_text(self.default)
        return text != default and to_text(parse_value(self, text)) != default

    def words(self, text: str) -> list[str]:
        """Return the words of the script's command line that give it a value.

        Raises:
            ArgumentError: The text is no value of its type, or the script has no option for it.
        """
        value, kind = checked_value(self, text), self.type.kind
        if kind in ("list", "tuple"):
            items = split_list(text)
            if self.repeats:
                return [word for item in items for word in self._option(item)]
            if self.style == "joined":
                return [f"{self.flag}={','.join(items)}"]
            return [self.flag, *items] if self.flag else items
        if value is None and self.style != "override":
            choice = "true or false" if kind == "bool" else "a value"
            raise ArgumentError(self.name, f"the script has no way to unset it: use {choice}")
        if kind == "bool" and self.arity == 0:
            if not value and not self.off:
                raise ArgumentError(self.name, f"no option of the script turns {self.flag} off")
            return [self.flag if value else self.off]
        if self.repeats and kind == "int":
            return [self.flag] * int(text)
        return self._option(self.booleans[value] if kind == "bool" else text)

    def _option(self, text: str) -> list[str]:
        if self.style == "override":
            return [f"{self.name}={_override_text(text, self.type.kind)}"]
        if self.style in ("positional", "command"):
            return [text]
        # Parsers take a word that begins with a dash for an option.
        if self.style == "joined" or text.startswith("-"):
            return [f"{self.flag}={text}"] if self.flag.startswith("--") or not text else [self.flag, text]
        return [self.flag, text]


def make_argument(
    name: str,
    kind: str,
    default: Any,
    *,
    type_name: str = "",
    choices: tuple[str, ...] = (),
    optional: bool = False,
    names: Sequence[str] = (),
    style: Style = "option",
    help: str = "",
    arity: int | Literal["*"] = 1,
    repeats: bool = False,
    **more: Any,
) -> ScriptArgument:
    """Make an argument; one that takes several words, or is repeated, is a list.

    Args:
        name: Its name.
        kind: The kind of each value; what is neither number nor bool is a text.
        default: Its default, or `REQUIRED`.
        type_name: The name of its type.
        choices: The valid texts.
        optional: Whether None is a value, also if it is not the default.
        names: Its options, if they are others than its name.
        style: How it is given.
        help: Its description.
        arity: The words after its option.
        repeats: Whether the option is repeated.
        more: Further attributes of the argument.
    """
    item = kind if kind in PRIMITIVES else "str"
    made = ValueType(item, type_name or kind, choices=choices)
    if arity not in (0, 1) or (repeats and arity == 1):
        is_list = repeats or arity == "*" or arity > _MAX_WORDS
        items = (item,) if is_list else (item,) * int(arity)
        shape = "list" if is_list else "tuple"
        made = ValueType(shape, f"{shape}[{','.join(items)}]", items)
        help = f"{help} [{', '.join(choices)}]".strip() if choices else help
        default = [default] if isinstance(default, (str, int, float)) else default
    flag = ""
    if style in ("option", "joined"):
        names = names or [f"--{name}"]
        flag = next((option for option in names if option.startswith("--")), names[0])
        made = replace(made, flags=tuple(option for option in names if option != f"--{name}"))
    made = replace(made, optional=optional or default is None)
    return ScriptArgument(
        name,
        "positional" if style in ("positional", "command") else "keyword_only",
        made,
        default,
        help,
        part="variable" if style == "variable" else "",
        # The shell takes what the script takes; a count is a number here.
        arity=1 if repeats else arity,
        style=style,
        flag=flag,
        repeats=repeats,
        **more,
    )


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a parameter."""
    return 0 < len(text) <= LONGEST_NAME and text.isprintable() and not re.search(r"[\s=]", text) and text[0] != "-"


def command_words(arguments: Sequence[ScriptArgument], texts: dict[str, str], rest: Sequence[str]) -> list[str]:
    """Return the words of a script's command line: only what differs from its defaults, then the rest.

    Args:
        arguments: The script's arguments, in their order.
        texts: The texts by argument.
        rest: Words that are passed as they are.

    Raises:
        ArgumentError: A text is not valid, an argument is missing, or one belongs to another subcommand.
    """
    changed = {item.name for item in arguments if item.name in texts and item.is_changed(texts[item.name])}
    chosen = next((texts.get(item.name, "") for item in arguments if item.style == "command"), "")
    own = [item for item in arguments if not item.commands or chosen in item.commands]
    for item in arguments:
        if item.name in changed and item not in own:
            where = ", ".join(item.commands)
            raise ArgumentError(item.name, f"is an argument of {where}, not of {chosen or 'no subcommand'}")
    for item in own if not rest else ():
        if item.name not in texts and (item.default is REQUIRED or chosen in item.needed_by):
            raise ArgumentError(item.name, f"the script needs a value for {item.name}")
    before = _words([item for item in own if not item.commands], texts, changed)
    after = _words([item for item in own if item.commands], texts, changed)
    return [*before, *([chosen] if chosen else []), *after, *rest]


def _words(own: Sequence[ScriptArgument], texts: dict[str, str], changed: set[str]) -> list[str]:
    """Return the positional arguments, then the options, since an option may take any number of words."""
    positionals = [item for item in own if item.style == "positional"]
    given = [item for item in positionals if texts.get(item.name) or item.name in changed]
    for item in positionals[: len(given)]:
        if item not in given:
            raise ArgumentError(item.name, "the script needs a value for it, since a later one is given")
    words = [word for item in given for word in item.words(texts[item.name])]
    options = [
        word
        for item in own
        if item.name in changed and item.style in ("option", "joined", "override")
        for word in item.words(texts[item.name])
    ]
    return [*options, "--", *words] if any(word.startswith("-") for word in words) else [*words, *options]


def _override_text(text: str, kind: str) -> str:
    """Return a value as Hydra's grammar has it."""
    if not text:
        return "''" if kind == "str" else "null"
    if kind != "str" or _PLAIN_OVERRIDE.fullmatch(text):
        return text
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{quoted}'"
