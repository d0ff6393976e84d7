"""The description of a component, and the types of its parameters, read without running it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

PRIMITIVES = ("str", "int", "float", "bool")
_CONTAINERS = {"list": ("str",), "dict": ("str", "str"), "tuple": ()}
"""The containers, with the kinds inside one that is written without them."""
Enums = Mapping[str, tuple[str, ...]]
"""The names of the members of each Enum class of a file."""
ComponentKind = Literal["builtin", "plugin", "file", "module", "script"]
ParameterKind = Literal["positional_or_keyword", "keyword_only", "positional", "var_positional"]


class AnnotationError(Exception):
    """A type that no text can be parsed to; the message is TorchX's."""


class _Required:
    """The default of a parameter that has none."""

    def __bool__(self) -> bool:
        return False


REQUIRED = _Required()


@dataclass(frozen=True)
class Computed:
    """A default that is known only when the component's module runs.

    Args:
        text: Its source, such as `torchx.IMAGE`.
    """

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class ValueType:
    """A parameter's type.

    Args:
        kind: `str`, `int`, `float`, `bool`, `list`, `dict`, `tuple`, or `other` for a class of the component's own.
        name: How it is written, without `Optional` or `None`.
        items: The kinds inside a list (one), a dict (key and value) or a tuple.
        optional: Whether None is a value.
        choices: The valid texts; empty if all are.
        flags: Short options for the command line, such as `-cn`.
    """

    kind: str
    name: str
    items: tuple[str, ...] = ()
    optional: bool = False
    choices: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """One parameter of a component.

    Args:
        name: Its name.
        kind: How it is passed; `positional` is an argument of a script, which has a name for people alone.
        type: Its type.
        default: Its value if none is given; `REQUIRED` if one must be, `Computed` if it is not known.
        help: Its description in the docstring.
        form: The syntax of the text beyond its type, for the builtins' parameters: `topology` (j), `resource` (h),
            `mounts`, or empty. For options of sbatch: `time`, `memory`.
        part: For a Python script: `launch` for what is not the script's own, `variable` for a variable of its
            environment; empty for an argument.
        arity: For an argument of a Python script, the words that its option takes on a command line: 0 for a flag,
            `*` for any number.
        off: The option that sets a flag to False, empty if there is none.
        only_with: Another parameter and its values with which this one has a meaning; empty if it always has.
    """

    name: str
    kind: ParameterKind
    type: ValueType
    default: Any = REQUIRED
    help: str = ""
    form: str = ""
    part: Literal["", "launch", "variable"] = ""
    arity: int | Literal["*"] = 1
    off: str = ""
    only_with: tuple[str, tuple[str, ...]] = ("", ())

    @property
    def type_text(self) -> str:
        """The type as it is written: `int`, `list[str]`, `dict[str,str]`."""
        return self.type.name

    @property
    def choices(self) -> tuple[str, ...]:
        """The valid texts; empty if all are."""
        return self.type.choices

    @property
    def optional(self) -> bool:
        """Whether None is a value."""
        return self.type.optional

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.default is REQUIRED and self.kind != "var_positional"


@dataclass
class LinterMessage:
    """One fault of a component.

    Args:
        name: The rules that found it.
        description: What is wrong.
        line: The line, from 1; 0 where there is none.
        char: The column.
        severity: `error`, which prevents a launch, or `warning`.
    """

    name: str
    description: str
    line: int
    char: int
    severity: str = "error"


@dataclass(frozen=True)
class ComponentSummary:
    """One line of the list of components.

    Args:
        name: The name to find it by.
        kind: Where it comes from.
        path: Its file.
        line: Its line, from 1; if there is an error, the line of that.
        summary: The first sentence of its docstring.
        error: Why it cannot be launched, or None.
        owner: The owner of a file, empty for this user; None for other kinds, or if it is unknown.
    """

    name: str
    kind: ComponentKind
    path: Path
    line: int
    summary: str = ""
    error: str | None = None
    owner: str | None = None


@dataclass(frozen=True)
class ComponentDoc:
    """The description of a component, for a form.

    Args:
        name: The name to find it by.
        kind: Where it comes from.
        summary: The first sentence of its docstring.
        description: The rest of it, without the arguments.
        parameters: Its parameters, in order.
        path: Its file.
        line: Its line, from 1.
        module: Its module's name, empty for a file.
        findings: The messages of `validate`; an error prevents its launch.
        scheduler: The only scheduler that can run it; empty if any can.
        text: The text of a batch script, empty for another component.
    """

    name: str
    kind: ComponentKind
    summary: str
    description: str
    parameters: list[Parameter] = field(default_factory=list)
    path: Path = Path()
    line: int = 0
    module: str = ""
    findings: tuple[LinterMessage, ...] = ()
    scheduler: str = ""
    text: str = ""

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter of a name, or None."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)


def read_annotation(node: ast.expr, enums: Enums | None = None) -> ValueType:
    """Parse an annotation to a type.

    Args:
        node: The annotation.
        enums: The values of the module's own Enum classes, by class.

    Raises:
        AnnotationError: Components cannot have this type.
    """
    enums = enums or {}
    inner = _optional_inner(node)
    if inner is not None:
        return replace(read_annotation(inner, enums), optional=True)
    if not isinstance(node, ast.Subscript):
        return _simple_type(node, enums)
    container = _last_name(node.value)
    arguments = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if container == "Annotated" and len(arguments) > 1:
        metadata = [item.value for item in arguments[1:] if isinstance(item, ast.Constant)]
        flags = tuple(value for value in metadata if isinstance(value, str) and value.startswith("-"))
        return replace(read_annotation(arguments[0], enums), flags=flags)
    if container == "Literal":
        return _literal_type(node, arguments)
    kind = (container or "").lower()
    if kind not in _CONTAINERS or container not in (kind, kind.title()):
        raise AnnotationError(f"Unsupported container type {container or ast.unparse(node.value)!r}")
    return _container_type(node, kind, arguments)


def _simple_type(node: ast.expr, enums: Enums) -> ValueType:
    name = _last_name(node)
    if name in PRIMITIVES:
        return ValueType(str(name), str(name))
    kind = (name or "").lower()
    if kind in _CONTAINERS and (name == kind.title() or (name == kind and isinstance(node, ast.Name))):
        return ValueType(kind, kind, _CONTAINERS[kind])
    if isinstance(node, ast.Name):
        return ValueType("other", node.id, choices=enums.get(node.id, ()))
    raise AnnotationError(f"Unsupported argument type {ast.unparse(node)!r}")


def _container_type(node: ast.Subscript, kind: str, arguments: list[ast.expr]) -> ValueType:
    parts = ("key", "value") if kind == "dict" else ("element",) * len(arguments)
    if kind == "dict" and len(arguments) != 2:
        raise AnnotationError(
            f"Malformed dict type {ast.unparse(node)!r}, expected exactly two type parameters (dict[K, V])"
        )
    if kind == "list" and len(arguments) != 1:
        raise AnnotationError(f"Non-primitive element type {ast.unparse(node.slice)!r}")
    if kind == "tuple" and len(arguments) < 2:
        kind_of = "single-element" if arguments else "empty"
        raise AnnotationError(
            f"Unsupported tuple type {ast.unparse(node)!r}: {kind_of} tuples are valid typing but not supported for "
            "components; expected element types (tuple[T1, T2, ...])"
        )
    kinds: list[str] = []
    for argument, part in zip(arguments, parts, strict=True):
        item = _item_kind(argument)
        if item is None:
            raise AnnotationError(f"Non-primitive {part} type {ast.unparse(argument)!r}")
        kinds.append(item)
    return ValueType(kind, f"{kind}[{','.join(kinds)}]", tuple(kinds))


def _item_kind(node: ast.expr) -> str | None:
    name = _last_name(node)
    if isinstance(node, ast.Constant) and node.value is ...:
        return "..."
    if isinstance(node, ast.Name) or name in PRIMITIVES:
        return name
    return None


def _literal_type(node: ast.Subscript, arguments: list[ast.expr]) -> ValueType:
    values = [argument.value for argument in arguments if isinstance(argument, ast.Constant)]
    kinds = {type(value).__name__ for value in values}
    if len(values) != len(arguments) or len(kinds) != 1 or not kinds <= {"str", "int"}:
        raise AnnotationError(f"Unsupported type {ast.unparse(node)!r}: use texts only or whole numbers only")
    return ValueType(kinds.pop(), ast.unparse(node), choices=tuple(str(value) for value in values))


def _optional_inner(node: ast.expr) -> ast.expr | None:
    """Return T of `Optional[T]`, `T | None`, `None | T` and `Union[T, None]`; None for any other type."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Subscript) and _last_name(node.value) == "Optional":
        return node.slice
    elif isinstance(node, ast.Subscript) and _last_name(node.value) == "Union" and isinstance(node.slice, ast.Tuple):
        sides = node.slice.elts
    else:
        return None
    others = [side for side in sides if ast.unparse(side) != "None"]
    return others[0] if len(sides) == 2 and len(others) == 1 else None


def _last_name(node: ast.expr) -> str | None:
    """Return the last part of a name: `Dict` for `Dict`, `typing.Dict` and `t.Dict`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr
    return None
