"""What is known of a component without running it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from .lint import LinterMessage

ComponentKind = Literal["builtin", "plugin", "file", "module"]
ParameterKind = Literal["positional_or_keyword", "keyword_only", "var_positional"]


class _Required:
    """The default of a parameter that has none."""

    def __repr__(self) -> str:
        return "REQUIRED"

    def __bool__(self) -> bool:
        return False


REQUIRED = _Required()


@dataclass(frozen=True)
class Computed:
    """The default of a parameter that only running the component's module would tell.

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
        name: How it is written, without what makes it optional.
        items: The kinds inside a list (one), a dict (key and value) or a tuple.
        optional: Whether None is a value.
        choices: The only texts that are values; empty for no such limit.
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
        kind: How it is passed.
        type: Its type.
        default: Its value where none is given; `REQUIRED` where one must be, `Computed` where it is not known.
        help: What the docstring says about it.
        form: What a text means beyond its type, for the builtins' parameters: `topology` (j), `resource` (h),
            `mounts`, or empty.
    """

    name: str
    kind: ParameterKind
    type: ValueType
    default: Any = REQUIRED
    help: str = ""
    form: str = ""

    @property
    def type_text(self) -> str:
        """The type as it is written: `int`, `list[str]`, `dict[str,str]`."""
        return self.type.name

    @property
    def choices(self) -> tuple[str, ...]:
        """The only texts that are values; empty for no such limit."""
        return self.type.choices

    @property
    def optional(self) -> bool:
        """Whether None is a value."""
        return self.type.optional

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.default is REQUIRED and self.kind != "var_positional"


@dataclass(frozen=True)
class ComponentSummary:
    """One line of the list of components.

    Args:
        name: What it is found by.
        kind: Where it comes from.
        path: Its file.
        line: Its line, from 1; of the fault where there is an error.
        summary: The first sentence of its docstring.
        error: Why it cannot be launched, or None.
    """

    name: str
    kind: ComponentKind
    path: Path
    line: int
    summary: str = ""
    error: str | None = None


@dataclass(frozen=True)
class ComponentDoc:
    """What a form needs.

    Args:
        name: What it is found by.
        kind: Where it comes from.
        summary: The first sentence of its docstring.
        description: The rest of it, without the arguments.
        parameters: Its parameters, in order.
        path: Its file.
        line: Its line, from 1.
        module: Its module's name, empty for a file.
        findings: What `validate` says of it; one that is an error keeps it from being launched.
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

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter of a name, or None."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)
