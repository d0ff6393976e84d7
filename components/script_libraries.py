"""Recognises the calls of libraries that parse command lines: argparse, click, typer, absl, fire, dataclasses.

The evaluator follows a script and hands each call of a library to `Libraries`, which makes parsers of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .docstrings import read_docstring
from .model import REQUIRED, AnnotationError, Computed, ValueType, read_annotation
from .script_arguments import ScriptArgument, list_type, value_type
from .script_evaluator import (
    UNKNOWN,
    Call,
    ClassValue,
    Evaluator,
    FunctionValue,
    Imported,
    Instance,
    as_default,
    statements,
)

Unread = Callable[[ast.AST | None, str], object]
_CLICK_KINDS = {
    "INT": "int",
    "FLOAT": "float",
    "BOOL": "bool",
    "STRING": "str",
    "IntRange": "int",
    "FloatRange": "float",
    "Path": "Path",
    "File": "File",
}
_ABSL_KINDS = {
    "DEFINE_string": "str",
    "DEFINE_integer": "int",
    "DEFINE_float": "float",
    "DEFINE_bool": "bool",
    "DEFINE_boolean": "bool",
    "DEFINE_enum": "str",
    "DEFINE_enum_class": "str",
    "DEFINE_list": "list",
    "DEFINE_spaceseplist": "str",
    "DEFINE_multi_string": "str",
    "DEFINE_multi_integer": "int",
    "DEFINE_multi_float": "float",
    "DEFINE_multi_enum": "str",
    "DEFINE_alias": "",
    "DEFINE_config_file": "str",
    "DEFINE_config_dict": "",
}
_MAX_WORDS, _MAX_FIELDS = 100, 2_000
_FIELD_CALLS = frozenset({"field", "HfArg", "choice", "mutable_field", "list_field", "flag", "Field"})


@dataclass(eq=False)
class Parser(Instance):
    """A parser of a command line.

    Attributes:
        library: ``argparse``, ``hf`` (HfArgumentParser), ``simple_parsing``, ``tyro``, ``typer``, ``click``, ``fire``.
        arguments: Its arguments.
        commands: The parsers of its subcommands.
        command: The name of the argument that chooses one of them.
        needs_command: Whether one must be chosen.
        is_used: Whether it parses the command line.
        defaults: The defaults of `set_defaults`.
    """

    library: str = "argparse"
    arguments: list[ScriptArgument] = field(default_factory=list)
    commands: dict[str, Parser] = field(default_factory=dict)
    command: str = "command"
    needs_command: bool = False
    is_used: bool = False
    is_part: bool = False
    defaults: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class _Subparsers(Instance):
    parser: Parser = field(default_factory=Parser)


@dataclass(eq=False)
class _Declaration(Instance):
    """A call that describes an argument where it is declared: `typer.Option()`, `dataclasses.field()`."""

    kind: str = ""
    call: Any = None


@dataclass(eq=False)
class _Kind(Instance):
    """A type of click: its kind and choices."""

    kind: str = "str"
    choices: tuple[str, ...] = ()


class Libraries:
    """Makes parsers of the calls in a script.

    Args:
        tree: The script's syntax tree.
        lines: Its lines.
        unread: Is called with a node and a sentence about what cannot be read.
    """

    def __init__(self, tree: ast.Module, lines: Sequence[str], unread: Unread) -> None:
        self.parsers: list[Parser] = []
        self.hydra: list[Call] = []
        self.typers: list[_Typer] = []
        self._lines = lines
        self._unread = unread
        self._enums = {
            node.name: _enum_members(node)
            for node in statements(tree)
            if isinstance(node, ast.ClassDef) and _is_enum(node)
        }
        self._clicks: dict[ast.AST, Parser] = {}
        self._shared = Parser(library="absl")

    def parser(self, library: str, *, used: bool = False) -> Parser:
        """Add a parser."""
        made = Parser(library=library, is_used=used)
        self.parsers.append(made)
        return made

    def used(self, evaluator: Evaluator) -> list[Parser]:
        """Return the parsers of the command line; all parsers if none of them parses it here."""
        for app in self.typers:
            if not any(parser.library == "typer" for parser in self.parsers):
                self.use_typer(app, evaluator)
        called = [parser for node, parser in self._clicks.items() if evaluator.is_called(node)]  # type: ignore[arg-type]
        for parser in self.parsers:
            if parser.library == "click":
                parser.is_used = not called or parser in called
        used = [parser for parser in self.parsers if parser.is_used]
        return used or [parser for parser in self.parsers if not parser.is_part]

    # Calls

    def call(self, evaluator: Evaluator, owner: Any, name: str, call: Call) -> Any:
        """Return the value of a call of a library, or of a method of an object."""
        if isinstance(owner, Parser):
            return self._of_parser(owner, name, call, evaluator)
        if isinstance(owner, _Subparsers):
            if name == "add_parser" and call.args and isinstance(call.args[0], str):
                made = self._new_parser(call, evaluator)
                self.parsers.remove(made)
                owner.parser.commands[call.args[0]] = made
                return made
            return UNKNOWN
        if isinstance(owner, ClassValue):
            bases = [base.last for base in evaluator.bases(owner) if isinstance(base, Imported)]
            if any(base.endswith("ArgumentParser") for base in bases):
                return self._new_parser(call, evaluator, owner)
            if "Tap" in bases:
                made = self.parser("tap")
                self._add_class(made, owner, evaluator)
                return made
            return UNKNOWN
        if isinstance(owner, _Typer):
            if not name:
                self.use_typer(owner, evaluator)
            return UNKNOWN
        if owner is None:
            return self._of_library(evaluator, name, call)
        if name == "add_argument" and call.args and isinstance(call.args[0], str):
            return self._of_parser(self._anonymous, name, call, evaluator)
        return self._of_other(evaluator, name, call)

    @property
    def _anonymous(self) -> Parser:
        """The parser that a function of another file made."""
        found = next((parser for parser in self.parsers if parser.library == "unknown"), None)
        return found or self.parser("unknown")

    def _of_library(self, evaluator: Evaluator, path: str, call: Call) -> Any:
        last, first = path.rpartition(".")[2], path.partition(".")[0]
        if last.endswith("ArgumentParser") or last == "TrlParser":
            return self._new_parser(call, evaluator, library="hf" if last in _HF_PARSERS else path)
        if last in _ABSL_KINDS and (len(call.args) > 1 or call.keywords):
            self._define(last, call)
        elif last in ("mark_flag_as_required", "mark_flags_as_required") and call.args:
            self._require([call.args[0]] if isinstance(call.args[0], str) else call.args[0])
        elif path == "tyro.cli" or (first == "simple_parsing" and last == "parse"):
            self._add(self.parser(first, used=True), call.get(0, "f"), evaluator, call)
        elif path == "fire.Fire":
            self._fire(call, evaluator)
        elif path == "typer.run":
            self._add(self.parser("typer", used=True), call.get(0, "function"), evaluator, call)
        elif path == "typer.Typer":
            self.typers.append(_Typer())
            return self.typers[-1]
        elif first == "typer" and last in ("Option", "Argument"):
            return _Declaration(kind=last, call=call)
        elif first == "click" or last in ("option", "argument"):
            return self._click_value(last, call)
        elif last in _FIELD_CALLS:
            return _Declaration(kind=last, call=call)
        elif path in ("functools.partial", "partial"):
            first = call.args[0] if call.args else UNKNOWN
            return Instance(first, dict(call.keywords), call.args[1:]) if isinstance(first, ClassValue) else first
        return self._of_other(evaluator, path, call)

    def _of_other(self, evaluator: Evaluator, path: str, call: Call) -> Any:
        """Enter the functions that an unknown function is given; it may add arguments to a parser."""
        given = [*call.args, *call.keywords.values()]
        for value in given:
            if isinstance(value, FunctionValue) and not evaluator.is_called(value.node):
                evaluator.enter(value)
        for value in given:
            if isinstance(value, Parser):
                self._unread(call.node, f"the arguments that {path or 'a function of another file'} adds")
                return value
        return UNKNOWN

    # argparse

    def _new_parser(
        self, call: Call, evaluator: Evaluator, cls: ClassValue | None = None, library: str = "argparse"
    ) -> Parser:
        made = self.parser("simple_parsing" if library.startswith("simple_parsing") else library)
        made.cls = cls
        parents = call.keywords.get("parents", ())
        for parent in parents if isinstance(parents, (list, tuple)) else [UNKNOWN]:
            if isinstance(parent, Parser):
                parent.is_part = True
                made.arguments += parent.arguments
            else:
                self._unread(call.node, "the arguments of a parent of the parser")
        if library == "hf":
            classes = call.get(0, "dataclass_types", ())
            made.is_used = True
            for item in classes if isinstance(classes, (list, tuple)) else [classes]:
                self._add(made, item, evaluator, call)
        return made

    def _of_parser(self, parser: Parser, name: str, call: Call, evaluator: Evaluator) -> Any:
        if name == "add_argument":
            if (argument := self._argparse(call)) is not None:
                self._append(parser, argument)
        elif name in ("add_argument_group", "add_mutually_exclusive_group"):
            return parser
        elif name == "add_subparsers":
            dest = call.keywords.get("dest")
            parser.command = dest if isinstance(dest, str) else "command"
            parser.needs_command = call.keywords.get("required") is True
            return _Subparsers(parser=parser)
        elif name == "add_arguments":
            self._add(parser, call.get(0, "dataclass"), evaluator, call)
        elif name == "set_defaults":
            parser.defaults |= call.keywords
        elif name.startswith(("parse_args", "parse_known", "parse_intermixed", "parse_json", "parse_yaml")):
            parser.is_used = True
        return UNKNOWN

    def _append(self, parser: Parser, argument: ScriptArgument) -> None:
        """Add an argument; of two flags that set one value, the one that sets False becomes the other's `off`."""
        is_flag = argument.type.kind == "bool" and argument.arity == 0 and not argument.off
        for position, other in enumerate(parser.arguments if is_flag else ()):
            if (
                other.type.kind == "bool"
                and other.arity == 0
                and not other.off
                and other.dest == argument.dest
                and other.inverts != argument.inverts
            ):
                on, off = (argument, other) if other.inverts else (other, argument)
                # argparse takes the default of the one that is added first; store_false has True.
                merged = replace(on, off=off.flag, default=True if other.inverts else on.default)
                parser.arguments[position] = merged
                return
        parser.arguments.append(argument)

    def _argparse(self, call: Call) -> ScriptArgument | None:
        names = [name for name in call.args if isinstance(name, str)]
        action = call.keywords.get("action", "store")
        if isinstance(action, Imported):
            action = action.last
        if not names or len(names) != len(call.args):
            self._unread(call.node, "an argument whose name is an expression")
            return None
        help, default = call.keywords.get("help"), call.value("default")
        if action in ("help", "version") or _is_suppressed(help):
            return None
        dest = call.keywords.get("dest")
        if _is_suppressed(call.keywords.get("default")):
            default = None
        kind, type_name = _argparse_kind(call.keywords.get("type"))
        names, is_option = _option_names(names), names[0].startswith("-")
        name = names[0].lstrip("-")
        text = _help_text(help, {"default": default, "prog": "the script", "dest": dest or name, "type": type_name})
        required = call.keywords.get("required") is True
        base = ScriptArgument(name, "option", value_type(kind, type_name), default, text, names[0] if is_option else "")
        base = replace(base, dest=dest if isinstance(dest, str) else _dest(name))
        aliases = tuple(other for other in names if other != f"--{name}") if is_option else ()
        if action in ("store_true", "store_const", "append_const", "store_false"):
            default = default is True if action == "store_true" and not isinstance(default, Computed) else default
            default = False if action != "store_true" else default
            flag = replace(base, type=value_type("bool", flags=aliases), default=default, arity=0)
            return replace(flag, inverts=action == "store_false")
        if action == "BooleanOptionalAction":
            kind_of = value_type("bool", flags=aliases, optional=default is None)
            return replace(base, type=kind_of, arity=0, off=f"--no-{name}", default=REQUIRED if required else default)
        if action == "count":
            return replace(base, type=value_type("int", flags=aliases), default=default or 0, arity=0, repeats=True)
        nargs = call.keywords.get("nargs")
        if isinstance(nargs, Imported):
            nargs = {"REMAINDER": "...", "OPTIONAL": "?", "ZERO_OR_MORE": "*", "ONE_OR_MORE": "+"}.get(
                nargs.last, nargs
            )
        if nargs in ("...", "A...") and not is_option:
            return None
        choices = _choices(call.keywords.get("choices"))
        repeats = action in ("append", "extend")
        several = nargs in ("*", "+", "...") or (isinstance(nargs, int) and 0 < nargs <= _MAX_WORDS)
        if several or repeats:
            length = nargs if isinstance(nargs, int) and not repeats else "*"
            made = list_type(kind, length, flags=aliases, optional=default is None)
            if choices:
                text = f"{text} [{', '.join(choices)}]".strip()
            base = replace(base, type=made, help=text, default=_items(default), repeats=repeats and not several)
            base = replace(base, arity=length if several else 1)
            if repeats and default:
                # Items are added to the default.
                base = replace(base, default=Computed(call.source("default")))
        else:
            if kind == "bool":
                base = replace(base, booleans=("", "True"))
                default = bool(default) if isinstance(default, (int, str)) else default
            elif isinstance(default, str) and kind in ("int", "float"):
                default = _number(default, kind)
            made = value_type(kind, type_name, flags=aliases, optional=default is None, choices=choices)
            base = replace(base, type=made, default=default)
        if not is_option:
            needs = nargs not in ("?", "*", "...")
            return replace(base, style="positional", default=REQUIRED if needs else base.default)
        return replace(base, default=REQUIRED) if required else base

    # absl

    def _define(self, function: str, call: Call) -> None:
        name, default = call.get(0, "name"), call.get(1, "default")
        kind = _ABSL_KINDS[function]
        if not isinstance(name, str) or not kind:
            self._unread(call.node, "a flag whose name is an expression" if kind else f"the flags of {function}")
            return
        if self._shared not in self.parsers:
            self.parsers.append(self._shared)
            self._shared.is_used = True
        source = ast.unparse(call.node.args[1]) if len(call.node.args) > 1 else call.source("default")
        value = as_default(default, source)
        position = 3 if function in ("DEFINE_enum", "DEFINE_enum_class", "DEFINE_multi_enum") else 2
        choices = call.get(2, "enum_values") if position == 3 else ()
        if isinstance(choices, ClassValue):
            choices = [name for name, _ in self._enums.get(choices.node.name, ())]
        help = call.get(position, "help", "")
        if call.keywords.get("required") is True:
            value = REQUIRED
        if function == "DEFINE_list" or function.startswith("DEFINE_multi"):
            made = list_type("str" if kind == "list" else kind, "*", optional=value is None)
            value = value.split(",") if isinstance(value, str) and kind == "list" else _items(value)
        else:
            made = value_type(kind, optional=value is None, choices=_choices(choices))
        argument = ScriptArgument(
            name, "joined", made, value, _help_text(help), f"--{name}", booleans=("false", "true")
        )
        self._shared.arguments.append(replace(argument, repeats=function.startswith("DEFINE_multi")))

    def _require(self, names: Any) -> None:
        names = names if isinstance(names, (list, tuple)) else []
        self._shared.arguments = [
            replace(argument, default=REQUIRED) if argument.name in names and argument.default is None else argument
            for argument in self._shared.arguments
        ]

    # Decorators: click, typer, Hydra

    def decorated(self, evaluator: Evaluator, function: FunctionValue) -> None:
        """Find the commands of click and typer, and the configuration of Hydra, among a function's decorators."""
        node = function.node
        options: list[ScriptArgument] = []
        command: Parser | None = None
        for decorator in getattr(node, "decorator_list", ()):
            call = decorator if isinstance(decorator, ast.Call) else None
            target = call.func if call else decorator
            owner = evaluator.evaluate(target.value, function.scope) if isinstance(target, ast.Attribute) else None
            if isinstance(owner, _Typer):
                if getattr(target, "attr", "") == "command":
                    owner.commands.append((_command_name(evaluator, call, function), function))
                continue
            if isinstance(owner, FunctionValue) and owner.node in self._clicks and call is not None:
                command = Parser(library="click")
                self._clicks[owner.node].commands[_command_name(evaluator, call, function)] = command
                self._clicks[owner.node].needs_command = True
                continue
            value = evaluator.evaluate(target, function.scope)
            if isinstance(value, FunctionValue):
                options += self._helper_options(evaluator, value)
            elif isinstance(value, Imported):
                if value.path == "hydra.main":
                    self.hydra.append(evaluator.arguments(call or ast.Call(target, [], []), function.scope))
                elif value.last in ("command", "group") and "click" in value.path:
                    command = self.parser("click")
                elif value.last in ("option", "argument") and call is not None:
                    made = self._click(value.last, evaluator.arguments(call, function.scope))
                    options += [made] if made else []
        if command is not None:
            command.arguments += options
            command.is_used = command in self.parsers
            self._clicks[node] = command

    def _helper_options(self, evaluator: Evaluator, function: FunctionValue) -> Iterator[ScriptArgument]:
        """Yield the options that a decorator of the script adds."""
        for node in ast.walk(function.node):
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
                value = evaluator.evaluate(node.func, function.scope)
                if isinstance(value, Imported) and value.last in ("option", "argument"):
                    made = self._click(value.last, evaluator.arguments(node, function.scope))
                    if made is not None:
                        yield made

    def _click_value(self, last: str, call: Call) -> Any:
        if last == "Choice":
            return _Kind(choices=_choices(call.get(0, "choices")))
        return _Kind(kind=_CLICK_KINDS[last]) if last in _CLICK_KINDS else UNKNOWN

    def _click(self, which: str, call: Call) -> ScriptArgument | None:
        names = [name for name in call.args if isinstance(name, str)]
        if len(names) != len(call.args) or not names:
            self._unread(call.node, "an option whose name is an expression")
            return None
        if call.keywords.get("hidden") is True:
            return None
        default, multiple = call.value("default"), call.keywords.get("multiple") is True
        nargs = call.keywords.get("nargs", 1)
        kind, choices, type_name = self._click_kind(call.keywords.get("type"), default)
        help = _help_text(call.keywords.get("help"))
        required = call.keywords.get("required") is True
        if which == "argument":
            optional = call.keywords.get("required") is False or "default" in call.keywords or nargs == -1
            several = isinstance(nargs, int) and nargs != 1 and -1 <= nargs <= _MAX_WORDS
            made = (
                list_type(kind, "*" if nargs == -1 else nargs)
                if several
                else (value_type(kind, type_name, optional=default is None, choices=choices))
            )
            value = (_items(default) if several else default) if optional and not required else REQUIRED
            arity: Any = ("*" if nargs == -1 else nargs) if several else 1
            return ScriptArgument(names[0].lower(), "positional", made, value, help, arity=arity)
        options = [name for name in names if name.startswith(("-", "/"))]
        pairs = [name.partition("/") for name in options if name.startswith("-")]
        on = _option_names([first.strip() for first, _, _ in pairs])
        off = _option_names([second.strip() for _, sign, second in pairs if sign])
        if not on:
            return None
        name = on[0].lstrip("-")
        aliases = tuple(other for other in on if other != f"--{name}")
        base = ScriptArgument(name, "option", value_type(kind), default, help, on[0])
        if call.keywords.get("count") is True:
            return replace(base, type=value_type("int", flags=aliases), default=default or 0, arity=0, repeats=True)
        if call.keywords.get("is_flag") is True or off or "flag_value" in call.keywords:
            value = default if isinstance(default, (bool, Computed)) else False
            made = value_type("bool", flags=aliases)
            return replace(base, type=made, default=REQUIRED if required else value, arity=0, off=off[0] if off else "")
        several = isinstance(nargs, int) and 1 < nargs <= _MAX_WORDS
        if multiple or several:
            made = list_type(kind, "*" if multiple else nargs, flags=aliases, optional=default is None)
            base = replace(base, arity=1 if multiple else nargs, repeats=multiple, default=_items(default))
        else:
            made = value_type(kind, type_name, flags=aliases, choices=choices, optional=default is None)
        needs = required or (call.keywords.get("prompt") not in (None, False) and default is None)
        return replace(base, type=made, default=REQUIRED if needs else base.default)

    def _click_kind(self, given: Any, default: Any) -> tuple[str, tuple[str, ...], str]:
        if isinstance(given, _Kind):
            return given.kind, given.choices, given.kind
        if isinstance(given, Imported):
            kind = _CLICK_KINDS.get(given.last, given.last)
            return kind, (), kind
        if isinstance(given, (FunctionValue, ClassValue)):
            return "str", (), getattr(given.node, "name", "str")
        if given is None and not isinstance(default, Computed):
            first = default[0] if isinstance(default, (list, tuple)) and default else default
            return (type(first).__name__ if isinstance(first, (bool, int, float)) else "str"), (), ""
        return "str", (), ""

    def use_typer(self, app: _Typer, evaluator: Evaluator) -> None:
        """Add the commands of a typer app that is called."""
        parser = self.parser("typer", used=True)
        if len(app.commands) == 1:
            self._add(parser, app.commands[0][1], evaluator, None)
            return
        parser.needs_command = True
        for name, function in app.commands:
            parser.commands[name] = Parser(library="typer")
            self._add(parser.commands[name], function, evaluator, None)

    # Signatures and dataclasses

    def _fire(self, call: Call, evaluator: Evaluator) -> None:
        target = call.get(0, "component")
        parser = self.parser("fire", used=True)
        if isinstance(target, dict):
            parser.needs_command = True
            for name, function in target.items():
                parser.commands[str(name)] = Parser(library="fire")
                self._add(parser.commands[str(name)], function, evaluator, call)
        elif isinstance(target, FunctionValue):
            self._add(parser, target, evaluator, call)
        else:
            self._unread(call.node, "the commands of fire.Fire, which is given no function")

    def _add(self, parser: Parser, target: Any, evaluator: Evaluator, call: Call | None) -> None:
        """Add the arguments that a library makes of a function or a dataclass."""
        if isinstance(target, FunctionValue) and not isinstance(target.node, ast.Lambda):
            self._add_signature(parser, target, evaluator)
        elif isinstance(target, ClassValue):
            self._add_class(parser, target, evaluator)
        elif target is not None:
            name = target.path if isinstance(target, Imported) else "a class or function that is not known here"
            self._unread(call.node if call else None, f"the arguments of {name}")

    def _add_signature(self, parser: Parser, function: FunctionValue, evaluator: Evaluator) -> None:
        arguments: Any = function.node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        missing: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
        pairs = [*zip(positional, [*missing, *arguments.defaults], strict=True)]
        pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        docstring = ast.get_docstring(function.node, clean=False)  # type: ignore[arg-type]
        helps = read_docstring(docstring).parameters if docstring else {}
        for parameter, default in pairs:
            if function.bound is not None and parameter is pairs[0][0]:
                continue
            value = REQUIRED if default is None else evaluator.evaluate(default, function.scope)
            source = "" if default is None else ast.unparse(default)
            field_ = _Field(parameter.arg, parameter.annotation, value, source, helps.get(parameter.arg, ""))
            self._add_field(parser, field_, "", function.scope, evaluator)
        if arguments.kwarg and parser.library == "fire":
            self._unread(function.node, "further arguments that the function takes by name")

    def _add_class(
        self, parser: Parser, cls: ClassValue, evaluator: Evaluator, prefix: str = "", made: Instance | None = None
    ) -> None:
        """Add the fields of a dataclass, with the defaults of an object of it."""
        fields = self._fields(cls, evaluator, set())
        given = {}
        if made is not None:
            given = {**dict(zip((one.name for one in fields), made.args)), **made.attributes}  # noqa: B905
        for one in fields:
            if one.name in given:
                one = replace(one, default=given[one.name], source=str(given[one.name]))
            self._add_field(parser, one, prefix, cls.scope, evaluator)

    def _fields(self, cls: ClassValue, evaluator: Evaluator, seen: set[ast.AST]) -> list[_Field]:
        """List the fields of a dataclass, those of its bases first."""
        fields: dict[str, _Field] = {}
        if cls.node in seen:
            return []
        seen.add(cls.node)
        for base in reversed(evaluator.bases(cls)):
            if isinstance(base, ClassValue):
                fields |= {item.name: item for item in self._fields(base, evaluator, seen)}
            elif isinstance(base, Imported) and base.last not in ("ABC", "Protocol", "Serializable", "object", "Tap"):
                self._unread(cls.node, f"the arguments of {base.path}")
        body = cls.node.body
        for position, line in enumerate(body):
            if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name):
                continue
            if _last_part(line.annotation) in ("ClassVar", "KW_ONLY", "InitVar"):
                continue
            following = body[position + 1] if position + 1 < len(body) else None
            value = REQUIRED if line.value is None else evaluator.evaluate(line.value, cls.scope)
            source = "" if line.value is None else ast.unparse(line.value)
            help = self._comment(line)
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                help = str(following.value.value)
            fields[line.target.id] = _Field(line.target.id, line.annotation, value, source, " ".join(help.split()))
        return list(fields.values())

    def _comment(self, line: ast.stmt) -> str:
        """Return the comment at the end of a line."""
        text = self._lines[line.end_lineno - 1] if line.end_lineno and line.end_lineno <= len(self._lines) else ""
        rest = text.encode()[line.end_col_offset or 0 :].decode("utf-8", "replace").strip()
        return rest.lstrip("# ") if rest.startswith("#") else ""

    def _add_field(self, parser: Parser, field_: _Field, prefix: str, scope: Any, evaluator: Evaluator) -> None:
        evaluator.check_time()
        if len(parser.arguments) >= _MAX_FIELDS:
            return
        library, default, help = parser.library, field_.default, field_.help
        annotation, declarations = _unwrap_annotated(field_.annotation)
        declared = [evaluator.evaluate(item, scope) for item in declarations]
        aliases: tuple[str, ...] = ()
        choices: Any = ()
        is_positional = library in ("typer", "fire") and default is REQUIRED
        for item in [default, *declared]:
            if not isinstance(item, _Declaration):
                continue
            call: Call = item.call
            if item.kind in ("Option", "Argument"):
                is_positional = item.kind == "Argument"
                names = [name for name in call.args if isinstance(name, str) and name.startswith("-")]
                aliases = tuple(names)
                if item is default:
                    first = call.args[0] if call.args and call.args[0] not in names else UNKNOWN
                    first = call.keywords.get("default", first)
                    default = REQUIRED if first is ... or first is UNKNOWN else first
                if call.keywords.get("hidden") is True:
                    return
            else:
                if call.keywords.get("init") is False:
                    return
                if item is default:
                    default = _declared_default(item, evaluator)
                metadata = call.keywords.get("metadata")
                metadata = metadata if isinstance(metadata, dict) else {}
                choices = metadata.get("choices", call.args if item.kind == "choice" else ())
                given = call.keywords.get("aliases", metadata.get("aliases", ()))
                aliases = (
                    tuple(name for name in given if isinstance(name, str)) if isinstance(given, (list, tuple)) else ()
                )
                help = _help_text(metadata.get("help")) or help
            help = _help_text(call.keywords.get("help")) or help
        nested = scope.get(_last_part(annotation)) if annotation is not None else None
        if isinstance(nested, Imported):
            nested = evaluator.resolved(nested)
        if isinstance(nested, ClassValue) and not _is_enum(nested.node) and library in ("tyro", "simple_parsing"):
            inner = f"{prefix}{field_.name}."
            if prefix.count(".") < 3:
                self._add_class(parser, nested, evaluator, inner, default if isinstance(default, Instance) else None)
            return
        if isinstance(default, Imported) and default.path.rpartition(".")[0] in self._enums:
            default = default.last
        value = default if default is REQUIRED else as_default(default, field_.source)
        made = self._annotated_type(annotation, library, value)
        if choices:
            made = replace(made, choices=_choices(choices))
        path = f"{prefix}{field_.name}"
        name = field_.name if library == "simple_parsing" else path
        argument = replace(_by_library(library, name, made, value, help, aliases), dest=path)
        if is_positional:
            argument = replace(argument, style="positional", flag="", arity=1)
            if library == "fire" and made.kind == "bool":
                argument = replace(argument, booleans=("False", "True"))
        parser.arguments.append(argument)

    def _annotated_type(self, annotation: ast.expr | None, library: str, default: Any) -> ValueType:
        """Return the type of an annotation; without one, that of the default."""
        position = 0 if library == "tyro" else 1
        enums = {name: tuple(member[position] for member in members) for name, members in self._enums.items()}
        if annotation is None:
            if isinstance(default, (bool, int, float)):
                return value_type(type(default).__name__)
            return value_type("str", optional=default is None)
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                annotation = ast.parse(annotation.value, mode="eval").body
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return value_type("str")
        try:
            made = read_annotation(annotation, enums)
        except AnnotationError:
            return ValueType("str", ast.unparse(annotation), optional=default is None)
        if made.kind in ("dict", "other"):
            return ValueType("str", made.name, optional=made.optional or default is None, choices=made.choices)
        if made.kind in ("list", "tuple") and not set(made.items) <= {"int", "float", "bool", "str", "..."}:
            return list_type("str", "*", optional=made.optional)
        if made.kind == "tuple" and "..." in made.items:
            return list_type(made.items[0], "*", optional=made.optional)
        if made.kind == "tuple" and not made.items:
            return list_type("str", "*", optional=made.optional)
        return replace(made, optional=True) if default is None else made


@dataclass(eq=False)
class _Typer(Instance):
    commands: list[tuple[str, FunctionValue]] = field(default_factory=list)


@dataclass(frozen=True)
class _Field:
    """A field of a dataclass or a parameter of a function, with the source of its default."""

    name: str
    annotation: ast.expr | None
    default: Any
    source: str
    help: str


_HF_PARSERS = ("HfArgumentParser", "TrlParser", "H4ArgumentParser")


def _by_library(
    library: str, name: str, made: ValueType, default: Any, help: str, aliases: tuple[str, ...]
) -> ScriptArgument:
    """Return the argument that a library makes of a name and a type."""
    shown = name.replace("_", "-") if library in ("tyro", "typer") else name
    if library == "typer" and (long := [alias for alias in aliases if alias.startswith("--")]):
        shown = long[0].partition("/")[0][2:]
    flags = tuple(alias for alias in aliases if alias != f"--{shown}" and "/" not in alias)
    is_list = made.kind in ("list", "tuple")
    if default is not REQUIRED and is_list:
        default = _items(default)
    if library == "fire":
        if is_list or not isinstance(default, (str, int, float, type(None), type(REQUIRED))):
            # Fire reads the text as Python.
            made, default = ValueType("str", made.name, optional=True), default
            default = Computed(repr(default)) if isinstance(default, (list, tuple)) else default
        return ScriptArgument(shown, "joined", replace(made, flags=flags), default, help, f"--{shown}")
    if library in ("tyro", "typer"):
        if shown != name:
            flags = (*flags, f"--{name}")
        if made.kind == "bool" and (library == "typer" or default is not REQUIRED) and not made.optional:
            head, dot, last = shown.rpartition(".")
            made = replace(made, flags=flags)
            return ScriptArgument(
                shown, "option", made, default, help, f"--{shown}", arity=0, off=f"--{head}{dot}no-{last}"
            )
    made = replace(made, flags=flags)
    arity: Any = (len(made.items) if made.kind == "tuple" else "*") if is_list else 1
    repeats = library == "typer" and made.kind == "list"
    return ScriptArgument(
        shown, "option", made, default, help, f"--{shown}", arity=1 if repeats else arity, repeats=repeats
    )


def _declared_default(item: _Declaration, evaluator: Evaluator) -> Any:
    """Return the default of `dataclasses.field(...)` and of functions like it."""
    call: Call = item.call
    if item.kind == "mutable_field" and call.args:
        factory = call.args[0]
    elif "default_factory" in call.keywords:
        factory = call.keywords["default_factory"]
    elif item.kind == "list_field":
        return list(call.args)
    else:
        first = call.args[0] if call.args and item.kind not in ("choice",) else REQUIRED
        return call.keywords.get("default", first)
    if isinstance(factory, FunctionValue):
        return evaluator.enter(factory)
    if isinstance(factory, Imported) and factory.path in ("list", "tuple"):
        return []
    if isinstance(factory, Instance):
        return factory
    return Instance(factory, dict(call.keywords)) if isinstance(factory, ClassValue) else UNKNOWN


def _argparse_kind(given: Any) -> tuple[str, str]:
    """Return the kind of an argparse `type`, and its name."""
    if isinstance(given, Imported):
        return (given.path if given.path in ("int", "float", "bool") else "str"), given.last
    if isinstance(given, (FunctionValue, ClassValue)):
        return "str", getattr(given.node, "name", "str")
    return "str", "str"


def _option_names(names: Sequence[str]) -> list[str]:
    """Return names with the long ones first."""
    return sorted(names, key=lambda name: not name.startswith("--"))


def _dest(name: str) -> str:
    return name.replace("-", "_")


def _is_suppressed(value: Any) -> bool:
    return isinstance(value, Imported) and value.last == "SUPPRESS"


def _help_text(help: Any, values: Mapping[str, Any] | None = None) -> str:
    """Return a help in one line, with the values that argparse puts into it."""
    if not isinstance(help, str):
        return ""
    text = " ".join(help.split())
    if values is not None:
        text = re.sub(r"%\((\w+)\)[sdrfg]", lambda found: str(values.get(found[1], found[0])), text).replace("%%", "%")
    return text


def _choices(given: Any) -> tuple[str, ...]:
    items = list(given) if isinstance(given, (list, tuple, dict)) else []
    return tuple(map(str, items)) if all(isinstance(item, (str, int, float)) for item in items) else ()


def _items(default: Any) -> Any:
    """Return the default of a list as a list."""
    if default is None or isinstance(default, (Computed, list)) or default is REQUIRED:
        return default
    return list(default) if isinstance(default, tuple) else [default]


def _number(text: str, kind: str) -> Any:
    try:
        return int(text) if kind == "int" else float(text)
    except ValueError:
        return Computed(text)


def _command_name(evaluator: Evaluator, call: ast.Call | None, function: FunctionValue) -> str:
    given = evaluator.arguments(call, function.scope).get(0, "name") if call else None
    return given if isinstance(given, str) else str(getattr(function.node, "name", "")).replace("_", "-")


def _unwrap_annotated(annotation: ast.expr | None) -> tuple[ast.expr | None, list[ast.expr]]:
    """Return the type in `Annotated[...]`, and the rest."""
    if isinstance(annotation, ast.Subscript) and _last_part(annotation.value) == "Annotated":
        inner = annotation.slice
        if isinstance(inner, ast.Tuple) and inner.elts:
            return inner.elts[0], inner.elts[1:]
    return annotation, []


def _last_part(node: ast.expr | None) -> str:
    """Return the last part of a name, without what is in brackets."""
    if isinstance(node, ast.Subscript):
        return _last_part(node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.partition("[")[0].rpartition(".")[2]
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_enum(node: ast.ClassDef) -> bool:
    return any(_last_part(base).endswith("Enum") for base in node.bases)


def _enum_members(node: ast.ClassDef) -> list[tuple[str, str]]:
    """Return the names and the values of an Enum's members."""
    members: list[tuple[str, str]] = []
    for line in node.body:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            value = line.value.value if isinstance(line.value, ast.Constant) else line.targets[0].id
            members.append((line.targets[0].id, str(value)))
    return members
