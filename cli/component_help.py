"""What `run COMPONENT --help` prints: the component's docstring, and its arguments with types and defaults."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ..components.command_line import flags_of
from ..components.model import REQUIRED
from ..components.values import to_text
from ..settings.launch_defaults import LaunchDefaults, resolve
from .output import put

if TYPE_CHECKING:
    from ..components.model import ComponentDoc, Parameter

_WIDTH = 100


def put_component_help(doc: ComponentDoc, defaults: LaunchDefaults) -> None:
    """Print the help of a component, with what config gives its arguments."""
    arguments = resolve(defaults, component=doc.name, doc=doc).arguments
    given = {name: f"{argument.value} ({argument.source})" for name, argument in arguments.items()}
    usage = [_usage(parameter) for parameter in doc.parameters]
    lines = textwrap.wrap(" ".join([f"usage: torchx-tui run {doc.name}", *usage]), _WIDTH, subsequent_indent="    ")
    for text in (doc.summary, doc.description):
        if text:
            lines += ["", text]
    if doc.parameters:
        lines += ["", "arguments:"]
    for parameter in doc.parameters:
        lines += _argument(parameter, given.get(parameter.name, ""))
    put("\n".join([*lines, "", f"{doc.path}:{doc.line}"]))


def _usage(parameter: Parameter) -> str:
    if parameter.kind == "var_positional":
        return f"[-- {parameter.name.upper()}...]"
    text = f"{flags_of(parameter)[0]} {parameter.name.upper()}"
    return text if parameter.required else f"[{text}]"


def _argument(parameter: Parameter, given: str) -> list[str]:
    """Return the lines of one argument: how it is written, its type, its value where none is given, what it does."""
    flags = f"{parameter.name.upper()}..." if parameter.kind == "var_positional" else ", ".join(flags_of(parameter))
    kind = " | ".join(parameter.choices) or parameter.type_text
    if given:
        default = f", {given}"
    elif parameter.required:
        default = ", required"
    elif parameter.default is REQUIRED or to_text(parameter.default) == "":
        default = ""
    else:
        default = f", {to_text(parameter.default)}"
    words = textwrap.wrap(parameter.help, _WIDTH, initial_indent="        ", subsequent_indent="        ")
    return [f"    {flags}  ({kind}{default})", *words]
