"""An argument of a Python script: the parameter that it is here, and the words that give it to the script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..specs.errors import ArgumentError
from .model import PRIMITIVES, REQUIRED, Computed, Parameter, ValueType
from .values import check_argument, parse_value, split_list, to_text

Style = Literal["option", "joined", "positional", "override", "command", "variable"]
LONGEST_NAME = 100
# What Hydra's grammar takes without quotes; brackets and quotes are Hydra's own syntax.
_PLAIN_OVERRIDE = re.compile(r"[\[{'\"].*|[\w./\\+$%*@?|:-]+(?: +[\w./\\+$%*@?|:-]+)*", re.DOTALL)


@dataclass(frozen=True)
class ScriptArgument:
    """One argument of a script.

    Args:
        name: Its name in forms, on our command line and in the journal.
        style: How it is given: `--lr 1` (option), `--lr=1` (joined), `1` (positional), `lr=1` (override, of Hydra), the
            name of a subcommand, or a variable of the environment.
        type: Its type.
        default: Its value if it is not given; `REQUIRED` if it must be, `Computed` if it is not known.
        help: Its description.
        flag: Its option.
        arity: The words after its option: 0 for a flag, a number, or `*`.
        repeats: Whether the option is repeated for each item of a list, or for each unit of a count.
        off: The option that sets a flag to False.
        booleans: The words for False and True, where it takes a word.
        commands: The subcommands that it belongs to; empty if it precedes them or there are none.
        needed_by: The subcommands that require it.
        dest: The attribute that a flag of argparse sets.
        inverts: Whether the flag sets that to False.
    """

    name: str
    style: Style
    type: ValueType
    default: Any = None
    help: str = ""
    flag: str = ""
    arity: int | Literal["*"] = 1
    repeats: bool = False
    off: str = ""
    booleans: tuple[str, str] = ("False", "True")
    commands: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()
    dest: str = ""
    inverts: bool = False

    @property
    def parameter(self) -> Parameter:
        """Its parameter."""
        is_positional = self.style in ("positional", "command")
        return Parameter(
            self.name,
            "positional" if is_positional else "keyword_only",
            self.type,
            self.default,
            f"{self.help} (only {', '.join(self.commands)})".strip() if self.commands else self.help,
            part="variable" if self.style == "variable" else "",
            # The shell takes what the script takes; a count is a number here.
            arity=1 if self.repeats else self.arity,
            off=self.off,
        )

    def is_changed(self, text: str) -> bool:
        """Return whether a valid text differs from the default."""
        if self.default is REQUIRED or isinstance(self.default, Computed):
            return text != to_text(self.default) or self.default is REQUIRED
        value = parse_value(self.parameter, text)
        same = list(value) == self.default if isinstance(value, tuple) else value == self.default
        return text != to_text(self.default) and not same

    def words(self, text: str) -> list[str]:
        """Return the words of the script's command line that give it a value.

        Raises:
            ArgumentError: The text is no value of its type, or the script has no option for it.
        """
        if fault := check_argument(self.parameter, text):
            raise ArgumentError(self.name, fault)
        if self.type.kind == "bool":
            return self._words_of_bool(parse_value(self.parameter, text))
        if self.repeats and self.type.kind == "int":
            return [self.flag] * int(text)
        if self.type.kind in ("list", "tuple"):
            items = split_list(text)
            if self.repeats:
                return [word for item in items for word in self._option(item)]
            if self.style == "joined":
                return [f"{self.flag}={','.join(items)}"]
            return [self.flag, *items] if self.flag else items
        if not text and self.type.optional and self.type.kind != "str" and self.style != "override":
            raise ArgumentError(self.name, "the script has no way to unset it: use a value")
        return self._option(text)

    def _words_of_bool(self, value: bool | None) -> list[str]:
        if value is None:
            raise ArgumentError(self.name, "the script has no way to unset it: use true or false")
        if self.arity != 0:
            return self._option(self.booleans[value])
        if value:
            return [self.flag]
        if not self.off:
            raise ArgumentError(self.name, f"no option of the script turns {self.flag} off")
        return [self.off]

    def _option(self, text: str) -> list[str]:
        if self.style == "override":
            return [f"{self.name}={_override_text(text, self.type.kind)}"]
        if self.style in ("positional", "command"):
            return [text]
        # Parsers take a word that begins with a dash for an option.
        if self.style == "joined" or text.startswith("-"):
            return [f"{self.flag}={text}"] if self.flag.startswith("--") or not text else [self.flag, text]
        return [self.flag, text]


def value_type(kind: str, name: str = "", **more: Any) -> ValueType:
    """Make the type of one value; what is neither number nor bool is a text."""
    return ValueType(kind if kind in PRIMITIVES else "str", name or kind, **more)


def list_type(kind: str, length: int | Literal["*"], **more: Any) -> ValueType:
    """Make the type of several values of one kind."""
    item = kind if kind in PRIMITIVES else "str"
    if length == "*":
        return ValueType("list", f"list[{item}]", (item,), **more)
    return ValueType("tuple", f"tuple[{','.join([item] * length)}]", (item,) * length, **more)


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
    command = next((item for item in arguments if item.style == "command"), None)
    chosen = ""
    if command is not None:
        chosen = texts.get(command.name) or ("" if command.default is REQUIRED else to_text(command.default))
    parts: list[list[str]] = [[], []]
    for after in (False, True):
        own = [item for item in arguments if bool(item.commands) == after and item.style not in ("command", "variable")]
        for item in own:
            if after and chosen not in item.commands and item.name in texts and item.is_changed(texts[item.name]):
                where = ", ".join(item.commands)
                raise ArgumentError(item.name, f"is an argument of {where}, not of {chosen or 'no subcommand'}")
        own = [item for item in own if not after or chosen in item.commands]
        missing = [
            item.name
            for item in own
            if item.name not in texts and (item.default is REQUIRED or chosen in item.needed_by) and not rest
        ]
        if missing:
            raise ArgumentError(missing[0], f"the script needs a value for {', '.join(missing)}")
        options = [
            word
            for item in own
            if item.style != "positional" and item.name in texts and item.is_changed(texts[item.name])
            for word in item.words(texts[item.name])
        ]
        parts[after] = _with_positionals(options, own, texts)
    given = [] if command is None or not chosen else [chosen]
    if command is not None and chosen == to_text(command.default) and not parts[1]:
        given = []
    return [*parts[0], *given, *parts[1], *rest]


def _with_positionals(options: list[str], own: Sequence[ScriptArgument], texts: dict[str, str]) -> list[str]:
    """Put the positional arguments before the options, since an option may take any number of words."""
    words: list[str] = []
    positionals = [item for item in own if item.style == "positional"]
    while positionals and not (
        positionals[-1].name in texts
        and (positionals[-1].default is REQUIRED or positionals[-1].is_changed(texts[positionals[-1].name]))
    ):
        positionals.pop()
    for item in positionals:
        if item.name not in texts and (item.default is None or isinstance(item.default, (Computed, tuple, list))):
            raise ArgumentError(item.name, "the script needs a value for it, since a later one is given")
        words += item.words(texts.get(item.name, to_text(item.default)))
    return [*options, "--", *words] if any(word.startswith("-") for word in words) else [*words, *options]


def _override_text(text: str, kind: str) -> str:
    """Return a value as Hydra's grammar has it."""
    if not text:
        return "''" if kind == "str" else "null"
    if kind != "str" or _PLAIN_OVERRIDE.fullmatch(text):
        return text
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{quoted}'"
