"""The help of a component: `run COMPONENT --help`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..components.command_line import flags_by_name
from ..components.model import REQUIRED
from ..components.python_script import is_python_name
from ..components.values import to_text
from ..settings.launch_defaults import LaunchDefaults, resolve
from .commands import help_formatter
from .output import put

if TYPE_CHECKING:
    from ..components.model import ComponentDoc


_TITLES = {"": "arguments", "variable": "variables of the environment", "launch": "launch"}


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
    is_script = is_python_name(doc.name)
    flags = flags_by_name(doc.name, doc.parameters)
    groups: dict[str, Any] = {"": parser}
    if is_script:
        parts = dict.fromkeys(parameter.part for parameter in doc.parameters)
        groups = {part: parser.add_argument_group(_TITLES[part]) for part in parts}
    for parameter in doc.parameters:
        group = groups[parameter.part]
        facts = [" | ".join(parameter.choices) or parameter.type_text]
        if argument := given.get(parameter.name):
            facts.append(f"{argument.value} ({argument.source})")
        elif parameter.required:
            facts.append("required")
        elif parameter.default is not REQUIRED and (default := to_text(parameter.default)):
            facts.append(default)
        text = f"{parameter.help} ({', '.join(facts)})".strip().replace("%", "%%")
        if parameter.kind == "var_positional":
            group.add_argument(parameter.name.upper(), nargs="*", help=text)
        else:
            is_required = parameter.required and not argument
            names = [*flags[parameter.name], *([parameter.off] if parameter.off else [])]
            form: dict[str, Any] = {"metavar": parameter.name.upper()}
            if parameter.arity == 0:
                form = {"action": "store_true", "default": argparse.SUPPRESS}
            group.add_argument(*names, required=is_required, help=text, **form)
    for finding in doc.findings:
        if finding.severity == "warning":
            parser.epilog = (
                f"{parser.epilog}\n{doc.path.name}{f':{finding.line}' if finding.line else ''}: {finding.description}"
            )
    put(parser.format_help().rstrip("\n"))
