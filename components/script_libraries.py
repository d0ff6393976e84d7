"""Reads the arguments that a script declares with argparse, click, typer, absl, fire, Hydra, or as a dataclass.

One walk follows a script from its top level into the functions and classes that it names, and finds the libraries'
calls. A function for each library makes arguments of a call.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from .docstrings import read_docstring
from .model import REQUIRED, AnnotationError, Computed, ValueType, read_annotation
from .script_arguments import ScriptArgument, make_argument
from .script_imports import Imports
from .script_syntax import Call, Syntax, computed
from .source import Definition, Function, arguments_of
from .values import to_text

Note = Callable[[ast.AST | None, str], object]
_FIELDS = {"tyro.cli": "tyro", "simple_parsing.parse": "simple_parsing", "typer.run": "typer", "fire.Fire": "fire"}
"""Functions that take a dataclass, or a function whose parameters are the arguments."""
_NESTING = ("tyro", "simple_parsing")
_NARGS = {"REMAINDER": "...", "OPTIONAL": "?", "ZERO_OR_MORE": "*", "ONE_OR_MORE": "+"}
_FLAGS = frozenset({"store_true", "store_false", "store_const", "append_const", "BooleanOptionalAction"})
_CLICK_KINDS = {
    "INT": "int",
    "IntRange": "int",
    "FLOAT": "float",
    "FloatRange": "float",
    "BOOL": "bool",
    "Choice": "str",
}
_ABSL_KINDS = {"integer": "int", "float": "float", "bool": "bool", "boolean": "bool"}


@dataclass
class Arguments:
    """The arguments of a script.

    Attributes:
        main: Those that precede a subcommand.
        commands: Those of each subcommand.
        command: The name of the argument that chooses one.
        needs_command: Whether one must be chosen.
        variables: Those of the environment that have a default.
        hydra: The call of `hydra.main`.
    """

    main: list[ScriptArgument] = field(default_factory=list)
    commands: dict[str, list[ScriptArgument]] = field(default_factory=dict)
    variables: list[ScriptArgument] = field(default_factory=list)
    command: str = "command"
    needs_command: bool = False
    hydra: Call | None = None

    def of(self, command: str | None) -> list[ScriptArgument]:
        """Return the arguments of a subcommand; those of the script itself without one."""
        return self.commands.setdefault(command, []) if command else self.main


@dataclass(frozen=True)
class Field:
    """A field of a dataclass or a parameter of a function."""

    name: str
    annotation: ast.expr | None
    default: ast.expr | None
    help: str
    node: Definition


class LibraryReader:
    """Follows one script.

    Args:
        syntax: The script.
        imports: Finds what it imports.
        note: Is called with a node and what cannot be read there.
    """

    def __init__(self, syntax: Syntax, imports: Imports, note: Note) -> None:
        self._found = Arguments()
        # The module that is read, and those of the functions and classes that were imported.
        self._syntax = self._script = syntax
        self._modules: dict[Definition, Syntax] = {}
        self._imports = imports
        self._note = note
        self._entered: set[tuple[ast.AST, str | None]] = set()
        # The subcommands of parsers by the expressions that name them: "" is the script's own parser.
        self._parsers: dict[str, str] = {}
        # The functions of apps of typer, by the app.
        self._apps: dict[str, dict[str, Function]] = {}
        # The subcommand of the function of click whose decorators are read, and the class that is read.
        self._command = ""
        self._class: Definition | None = None

    def read(self) -> Arguments:
        """Follow the script."""
        self._walk(self._syntax.body)
        for commands in self._apps.values():
            # An app with one command has no subcommands.
            self._found.needs_command = len(commands) > 1
            for command, function in commands.items():
                self._found.of(command if len(commands) > 1 else None).extend(self._of_definition("typer", function))
        return self._found

    def _add_note(self, node: ast.AST | None, what: str) -> None:
        self._note(node if self._syntax is self._script else None, what)

    def _walk(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            if isinstance(node, ast.Name):
                self._enter(self._definition(node))
            elif isinstance(node, ast.Call):
                self._call(Call(self._syntax, node))
            elif isinstance(node, Function):
                self._decorated(node)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                target = ast.unparse(node.targets[0])
                if self._syntax.path_of(node.value.func) == "typer.Typer":
                    self._apps[target] = {}
                elif (owner := self._owner(node.value)) is not None:
                    self._parsers[target] = owner

    def _definition(self, node: ast.AST | None, *, is_declaration: bool = False) -> Definition | None:
        """Return the function or class of a name; an imported one of a package only if it declares arguments."""
        path = self._syntax.path_of(node)
        if path == "cls" or path in self._syntax.definitions:
            return self._class if path == "cls" else self._syntax.definitions[path]
        imported = self._imports.find(path, is_declaration=is_declaration)
        if imported is None:
            return None
        self._modules[imported.node] = imported.syntax
        return imported.node

    @contextmanager
    def _in_module_of(self, node: Definition) -> Iterator[None]:
        before, self._syntax = self._syntax, self._modules.get(node, self._syntax)
        yield
        self._syntax = before

    def _enter(self, node: Definition | None, owner: str | None = None) -> None:
        """Follow a function or class, once for each parser that it is given."""
        if node is None or (node, owner) in self._entered:
            return
        self._entered |= {(node, owner), (node, None)}
        if isinstance(node, Function) and owner is not None and node.args.args:
            self._parsers[node.args.args[0].arg] = owner
        with self._in_module_of(node):
            self._walk(self._syntax.inside[node])
            for item in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(item, Function):
                    self._class = node
                    self._enter(item)

    def _owner(self, node: ast.AST) -> str | None:
        """Return the subcommand whose parser an expression is, empty for the script's own; None if it is no parser."""
        if not isinstance(node, ast.Call):
            return self._parsers.get(ast.unparse(node)) if isinstance(node, (ast.Name, ast.Attribute)) else None
        call = Call(self._syntax, node)
        if call.name == "add_parser":
            return call.text("name", 0) or None
        if isinstance(node.func, ast.Attribute) and call.name.startswith("add_"):
            return self._owner(node.func.value)
        return "" if call.name.endswith("ArgumentParser") else None

    def _call(self, call: Call) -> None:
        """Read a call of a library, or enter the function that is called."""
        node, name = call.node, call.name
        owner = self._owner(node.func.value) if isinstance(node.func, ast.Attribute) else None
        arguments = self._found.of(owner)
        if name == "add_argument":
            self._read(call, argparse_argument, owner)
        elif call.path in ("click.option", "click.argument"):
            self._read(call, click_argument, self._command)
        elif name.startswith("DEFINE_"):
            self._read(call, absl_argument, "")
        elif call.path in _FIELDS:
            self._read_fields(_FIELDS[call.path], call, call.node_of("", 0))
        elif call.path in ("os.environ.get", "os.getenv") and len(node.args) > 1:
            self._found.variables.append(environment_variable(call))
        elif name == "add_arguments":
            self._read_fields("simple_parsing", call, call.node_of("dataclass", 0))
        elif name in ("HfArgumentParser", "TrlParser"):
            classes = self._syntax.assigned(call.node_of("dataclass_types", 0))
            for item in classes.elts if isinstance(classes, (ast.Tuple, ast.List)) else [classes]:
                self._read_fields("hf", call, item)
        elif name == "ArgumentParser":
            for item in getattr(call.node_of("parents"), "elts", ()):
                if isinstance(item, ast.Call) and self._definition(item.func) is None:
                    self._add_note(node, f"the arguments of {self._syntax.path_of(item.func)}")
        elif name == "add_subparsers":
            self._found.command = call.text("dest") or "command"
            self._found.needs_command = call.is_true("required")
        elif name == "add_parser":
            if command := self._owner(node):
                self._found.of(command)
            else:
                self._add_note(node, "a subcommand whose name is an expression")
        elif name == "set_defaults":
            for position, item in enumerate(arguments):
                if (dest := item.name.replace("-", "_")) in call:
                    arguments[position] = replace(item, default=call.default(dest))
        elif name in ("mark_flag_as_required", "mark_flags_as_required"):
            names = call.value("", 0)
            names = [names] if isinstance(names, str) else names if isinstance(names, list) else ()
            arguments[:] = [replace(item, default=REQUIRED) if item.name in names else item for item in arguments]
        else:
            given = [owner for item in node.args if (owner := self._owner(item)) is not None]
            if function := self._definition(node.func, is_declaration=bool(given)):
                self._enter(function, given[0] if given else None)
            elif given:
                self._add_note(node, f"the arguments that {call.path or name} adds")

    def _read(self, call: Call, make: Callable[[Call], ScriptArgument | None], command: str | None) -> None:
        if not call.is_complete or not (call.text("name", 0) if make is absl_argument else call.names()):
            self._add_note(call.node, "an argument whose name is an expression")
        elif argument := make(call):
            self._found.of(command).append(argument)

    def _decorated(self, node: Function) -> None:
        """Find the commands of click and typer, and the configuration of Hydra, among a function's decorators."""
        for decorator in node.decorator_list:
            call = Call(self._syntax, decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], []))
            owner = call.path.rpartition(".")[0]
            command = call.text("name", 0) or node.name.replace("_", "-")
            if call.path == "hydra.main":
                self._found.hydra = call
            elif call.path in ("click.command", "click.group"):
                self._command = ""
            elif call.name == "command" and owner in self._apps:
                self._apps[owner][command] = node
            elif call.name == "command" and owner in self._syntax.definitions:
                self._command = command
                self._found.of(command)
                self._found.needs_command = True

    def _read_fields(self, library: str, call: Call, target: ast.AST | None) -> None:
        """Read the parameters of a function, or the fields of a dataclass."""
        found = self._definition(target, is_declaration=True)
        if not found or (library == "fire" and isinstance(found, ast.ClassDef)):
            self._add_note(call.node, f"the arguments of {self._syntax.path_of(target) or 'an expression'}")
            return
        arguments = self._of_definition(library, found)
        # simple-parsing puts the path before the names that several dataclasses have.
        short = [item.name.rpartition(".")[2] for item in arguments]
        for item, name in zip(arguments, short, strict=True):
            name = name if library == "simple_parsing" and short.count(name) == 1 else item.name
            self._found.main.append(replace(item, name=name, flag=f"--{name}" if item.flag else ""))

    def _of_definition(self, library: str, node: Definition, prefix: str = "") -> list[ScriptArgument]:
        with self._in_module_of(node):
            fields = _parameters(node) if isinstance(node, Function) else self._class_fields(node).values()
            return [item for one in fields for item in self._of_field(library, one, prefix)]

    def _of_field(self, library: str, one: Field, prefix: str) -> Iterable[ScriptArgument]:
        """Return the arguments of a field: one, none, or those of the dataclass that it holds."""
        with self._in_module_of(one.node):
            call = self._declaration(one)
            nested = self._definition(one.annotation) if library in _NESTING else None
            if isinstance(nested, ast.ClassDef) and nested.decorator_list:
                made = (call and call.node_of("default_factory")) or one.default
                is_own = made is None or ast.unparse(made) in (nested.name, f"{nested.name}()")
                found = self._of_definition(library, nested, f"{prefix}{one.name}.")
                return (
                    found
                    if is_own or one.default is None
                    else [replace(item, default=computed(one.default)) for item in found]
                )
            if call is not None and call.value("init") is False:
                return []
            if self._syntax.path_of(one.annotation).startswith("tyro.conf."):
                self._add_note(one.annotation, f"the argument {one.name}")
                return []
            return [self._argument_of(library, one, call, prefix)]

    def _class_fields(self, node: ast.ClassDef) -> dict[str, Field]:
        """Return the fields of a dataclass by name, those of its bases first."""
        fields: dict[str, Field] = {}
        self._syntax.check_time()
        for base in reversed(node.bases):
            if isinstance(found := self._definition(base, is_declaration=True), ast.ClassDef):
                with self._in_module_of(found):
                    fields |= self._class_fields(found)
            else:
                self._add_note(node, f"the arguments of {self._syntax.path_of(base)}")
        for line, following in zip(node.body, [*node.body[1:], None], strict=True):
            if isinstance(line, ast.AnnAssign) and "ClassVar" not in ast.unparse(line.annotation):
                name, documented = ast.unparse(line.target), following if isinstance(following, ast.Expr) else None
                help = self._syntax.value(documented.value) if documented else ""
                fields[name] = Field(name, line.annotation, line.value, help if isinstance(help, str) else "", node)
        return fields

    def _declaration(self, one: Field) -> Call | None:
        """Return the call that describes a field: `typer.Option()`, `dataclasses.field()`."""
        inner = one.annotation.slice if isinstance(one.annotation, ast.Subscript) else None
        for node in (one.default, *(inner.elts if isinstance(inner, ast.Tuple) else ())):
            call = Call(self._syntax, node) if isinstance(node, ast.Call) else None
            if call and call.name in ("Option", "Argument", "field"):
                return call
        return None

    def _argument_of(self, library: str, one: Field, call: Call | None, prefix: str) -> ScriptArgument:
        """Return the argument that a library makes of a field."""
        default, help = self._syntax.default(one.default, REQUIRED), one.help
        is_positional = library in ("typer", "fire") and one.default is None
        names: list[str] = []
        if call is not None:
            metadata = call.value("metadata")
            help = (metadata.get("help") if isinstance(metadata, dict) else call.text()) or help
            texts = [self._syntax.value(item) for item in call.node.args]
            names = [text for text in texts if isinstance(text, str) and text.startswith("-")]
            is_positional = call.name == "Argument" or (is_positional and call.name != "Option")
            if call.node is one.default:
                default = self._declared_default(call, len(names) < len(texts))
        shown = f"{prefix}{one.name}".replace("_", "-" if library in ("tyro", "typer") else "_")
        on, _, off = next((name for name in names if name.startswith("--")), f"--{shown}").partition("/")
        shown = on[2:]
        made = _annotated_type(one.annotation, default)
        is_list, arity = made.kind in ("list", "tuple"), 1
        if library == "fire" and is_list:
            # Fire reads the text as Python.
            made, is_list, default = ValueType("str", made.name), False, Computed(str(default))
        elif (
            made.kind == "bool"
            and not made.optional
            and not is_positional
            and (library == "typer" or (library == "tyro" and default is not REQUIRED))
        ):
            head, dot, last = shown.rpartition(".")
            arity, off = 0, off or f"--{head}{dot}no-{last}"
        repeats = library == "typer" and is_list and not is_positional
        if is_list and not repeats:
            arity = "*" if made.kind == "list" or "..." in made.items or not made.items else len(made.items)
        return make_argument(
            shown,
            made.items[0] if is_list and made.items else made.kind,
            default,
            type_name=made.name,
            choices=made.choices,
            optional=made.optional,
            style="positional" if is_positional else "joined" if library == "fire" else "option",
            names=[on, f"--{prefix}{one.name}", *(name for name in names if "/" not in name)],
            help=" ".join(str(help).split()),
            arity=arity,
            repeats=repeats,
            off=off,
            booleans=("False", "True"),
        )

    def _declared_default(self, call: Call, has_positional: bool) -> Any:
        """Return the default of `typer.Option(...)` or `dataclasses.field(...)`."""
        factory = call.node_of("default_factory")
        if isinstance(factory, ast.Lambda):
            return self._syntax.default(factory.body)
        if factory is not None:
            return [] if self._syntax.path_of(factory) in ("list", "tuple") else Computed(f"{ast.unparse(factory)}()")
        node = call.node_of("default", 0 if has_positional else None)
        is_ellipsis = isinstance(node, ast.Constant) and node.value is ...
        return self._syntax.default(None if is_ellipsis else node, REQUIRED)


def _parameters(node: Function) -> Iterator[Field]:
    helps = read_docstring(ast.get_docstring(node)).parameters
    for argument, default, kind in arguments_of(node):
        if kind != "var_positional":
            yield Field(argument.arg, argument.annotation, default, helps.get(argument.arg, ""), node)


def _annotated_type(annotation: ast.expr | None, default: Any) -> ValueType:
    """Return the type of an annotation; without one, that of the default."""
    if annotation is None:
        return ValueType(kind := _kind_of(default), kind)
    try:
        return read_annotation(annotation)
    except AnnotationError:
        return ValueType("str", ast.unparse(annotation))


def _kind_of(default: Any) -> str:
    return type(default).__name__ if isinstance(default, (bool, int, float, list)) else "str"


def _choices(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, (list, dict)) else ()


def argparse_argument(call: Call) -> ScriptArgument | None:
    """Return the argument of `add_argument`; None if it is not for a command line."""
    names, action, default = call.names(), call.symbol("action"), call.default()
    nargs = _NARGS.get(call.symbol("nargs"), call.value("nargs"))
    is_option, is_number = names[0].startswith("-"), isinstance(nargs, int)
    # The field of further arguments takes those of nargs="...".
    if action in ("help", "version") or call.symbol("help") == "SUPPRESS" or (nargs == "..." and not is_option):
        return None
    arity: Any = 1
    kind, repeats = call.symbol("type") or "str", action in ("append", "extend")
    if action in _FLAGS:
        kind, arity = "bool", 0
        if action != "BooleanOptionalAction":
            default = default if action == "store_true" and default is not None else False
    elif action == "count":
        kind, arity, repeats, default = "int", 0, True, default or 0
    elif nargs in ("*", "+", "...") or is_number:
        arity, repeats = "*" if repeats else nargs if is_number else "*", False
    elif kind == "bool" and isinstance(default, (int, str)):
        default = bool(default)
    if action in ("append", "extend") and default:
        # Items are added to the default.
        default = computed(call.node_of("default") or call.node)
    if (not is_option and nargs not in ("?", "*")) or call.is_true("required"):
        default = REQUIRED
    name = next((one for one in names if one.startswith("--")), names[0]).lstrip("-")
    return make_argument(
        name,
        kind,
        default,
        choices=_choices(call.value("choices")),
        names=names,
        style="option" if is_option else "positional",
        help=call.text().replace("%(default)s", to_text(default)).replace("%%", "%"),
        arity=arity,
        repeats=repeats,
        off=f"--no-{name}" if action == "BooleanOptionalAction" else "",
        # `type=bool` takes any text but the empty one for True.
        booleans=("", "True"),
    )


def click_argument(call: Call) -> ScriptArgument:
    """Return the argument of `click.option` or `click.argument`."""
    names, default, nargs = call.names(), call.default(), call.value("nargs")
    is_option, given = call.name == "option", call.node_of("type")
    kind, choices = call.symbol("type") or _kind_of(default), ()
    if isinstance(given, ast.Call):
        made = Call(call.syntax, given)
        kind, choices = made.name.replace("Choice", "str"), _choices(made.value("choices", 0))
    arity: Any = "*" if nargs == -1 else nargs if isinstance(nargs, int) else 1
    on = [name.partition("/")[0].strip() for name in names if name.startswith("-")]
    off = next((name.partition("/")[2].strip() for name in names if "/" in name), "")
    if call.is_true("count"):
        kind, arity, default = "int", 0, default or 0
    elif off or call.is_true("is_flag") or "flag_value" in call:
        kind, arity, default = "bool", 0, default if isinstance(default, (bool, Computed)) else False
    is_needed = not is_option and "default" not in call and nargs != -1 and call.value("required") is not False
    if is_needed or call.is_true("required"):
        default = REQUIRED
    return make_argument(
        next((one for one in on if one.startswith("--")), on[0]).lstrip("-") if is_option else names[0].lower(),
        _CLICK_KINDS.get(kind, kind),
        default,
        choices=choices,
        names=on,
        style="option" if is_option else "positional",
        help=call.text(),
        arity=arity,
        repeats=call.is_true("multiple") or call.is_true("count"),
        off=off,
    )


def absl_argument(call: Call) -> ScriptArgument:
    """Return the flag of `DEFINE_...`."""
    default, is_enum = call.default("default", 1), call.name == "DEFINE_enum"
    if call.name == "DEFINE_list" and isinstance(default, str):
        default = default.split(",")
    return make_argument(
        call.text("name", 0),
        _ABSL_KINDS.get(call.name.rpartition("_")[2], "str"),
        REQUIRED if call.is_true("required") else default,
        choices=_choices(call.value("enum_values", 2)) if is_enum else (),
        style="joined",
        help=call.text("help", 3 if is_enum else 2),
        arity="*" if call.name == "DEFINE_list" else 1,
        repeats=call.name.startswith("DEFINE_multi"),
        booleans=("false", "true"),
    )


def environment_variable(call: Call) -> ScriptArgument:
    """Return the variable of `os.environ.get` or `os.getenv`."""
    name = call.text("key", 0)
    help = f"The variable {name} of the script's environment"
    return make_argument(name, "str", call.default("default", 1), style="variable", help=help)
