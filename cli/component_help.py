"""The help of a component: `run COMPONENT --help`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..components.command_line import flags_of
from ..components.model import REQUIRED
from ..components.values import to_text
from ..settings.launch_defaults import LaunchDefaults, resolve
from .commands import help_formatter
from .output import put

if TYPE_CHECKING:
    from ..components.model import ComponentDoc


def put_component_help(doc: ComponentDoc, defaults: LaunchDefaults) -> None:
    """Print a component's docstring, and its arguments with types and the values that config or the component gives."""
    given = resolve(defaults, component=doc.name, doc=doc).arguments
    parser = argparse.ArgumentParser(
        prog=f"torchx-tui run {doc.name}",
        description="\n\n".join(filter(None, (doc.summary, doc.description))),
        epilog=f"{doc.path}:{doc.line}",
        formatter_class=help_formatter,
        add_help=False,
    )
    for parameter in doc.parameters:
        facts = [" | ".join(parameter.choices) or parameter.type_text]
        if argument := given.get(parameter.name):
            facts.append(f"{argument.value} ({argument.source})")
        elif parameter.required:
            facts.append("required")
        elif parameter.default is not REQUIRED and (default := to_text(parameter.default)):
            facts.append(default)
        text = f"{parameter.help} ({', '.join(facts)})".strip().replace("%", "%%")
        if parameter.kind == "var_positional":
            parser.add_argument(parameter.name.upper(), nargs="*", help=text)
        else:
            is_required = parameter.required and not argument
            parser.add_argument(*flags_of(parameter), metavar=parameter.name.upper(), required=is_required, help=text)
    put(parser.format_help().rstrip("\n"))
