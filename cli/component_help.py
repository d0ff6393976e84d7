"""The help of a component: `run COMPONENT --help`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..components.command_line import flags_by_name
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
    notes = [
        f"{doc.path.name}{f':{finding.line}' if finding.line else ''}: {finding.description}"
        for finding in doc.findings
        if finding.severity == "warning"
    ]
    parser = argparse.ArgumentParser(
        prog=f"torchx-tui run {doc.name}",
        description="\n\n".join(filter(None, (doc.summary, doc.description))),
        epilog="\n".join([f"{doc.path}:{doc.line}", *notes]),
        formatter_class=help_formatter,
        add_help=False,
    )
    flags = flags_by_name(doc.name, doc.parameters)
    groups: dict[str, Any] = {"": parser}
    if is_python_name(doc.name):
        parts = dict.fromkeys(parameter.part for parameter in doc.parameters)
        groups = {part: parser.add_argument_group(_TITLES[part]) for part in parts}
    for parameter in doc.parameters:
        argument = given.get(parameter.name)
        value = "required" if parameter.required else to_text(parameter.default)
        if argument:
            value = f"{argument.value} ({argument.source})"
        facts = filter(None, (" | ".join(parameter.choices) or parameter.type_text, value))
        form: dict[str, Any] = {"help": f"{parameter.help} ({', '.join(facts)})".strip().replace("%", "%%")}
        name = parameter.name.upper()
        group = groups[parameter.part]
        if parameter.kind == "var_positional":
            group.add_argument(name, nargs="*", **form)
            continue
        form |= {"action": "store_true", "default": argparse.SUPPRESS} if parameter.arity == 0 else {"metavar": name}
        names = [*flags[parameter.name], *([parameter.off] if parameter.off else [])]
        group.add_argument(*names, required=parameter.required and not argument, **form)
    put(parser.format_help().rstrip("\n"))
