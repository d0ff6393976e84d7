"""Shell commands that do the same as a screen."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...backends.api import PublishedPort
    from ...backends.history.journal import LaunchRecord
    from ...components.model import Parameter
    from ...settings.config import LaunchSettings
    from .form_model import FormModel
    from .plan import LaunchPlan

# Components that TorchX does not have.
_OURS = ("demo.",)


def prefers_torchx(settings: LaunchSettings | None) -> bool:
    """Return whether the settings prefer TorchX's commands and the project of the current folder has it."""
    from ...guest.interpreter import choose_interpreter
    from ...guest.settings import guest_settings

    if settings is None or not settings.copy_torchx_command:
        return False
    python = choose_interpreter(Path.cwd() / "component.py", guest_settings().python).path
    return os.access(Path(python).with_name("torchx"), os.X_OK)


def run_command(
    component: str,
    arguments: dict[str, Any],
    scheduler: str,
    cfg: dict[str, Any],
    workspace: str = "",
    overrides: Mapping[str, Mapping[str, str]] | None = None,
    parameters: Sequence[Parameter] | None = None,
    *,
    usual_workspace: str = "",
    ignores_config: bool = False,
    torchx: bool = False,
) -> list[str]:
    """Return the command that launches a component, with secrets masked.

    Without ``parameters`` the component's file is read. ``torchx`` prefers TorchX's command if that can do the same.
    """
    from ...backends.shared.secrets import mask_args, mask_data, mask_text
    from ...components.command_line import to_command_line
    from ...components.finder import is_script_name
    from ...specs.handles import split_context
    from ...specs.run_options import format_cfg

    # TorchX knows only the current context, and cannot ignore its config.
    ours = split_context(scheduler)[1] or cfg.get("context") or overrides or ignores_config
    ours = ours or component.startswith(_OURS) or is_script_name(component)
    command = ["torchx" if torchx and not ours else "torchx-tui", "run", "--scheduler", scheduler]
    if cfg:
        command += ["--scheduler_args", format_cfg(_masked_options(cfg))]
    if ignores_config:
        command.append("--ignore-config")
    if workspace or usual_workspace:
        command += ["--workspace", workspace]
    for role, texts in (overrides or {}).items():
        for name, text in texts.items():
            command += ["--set", f"{role}.{name}={mask_text(name, text)}"]
    return [*command, component, *mask_args(to_command_line(component, mask_data(arguments), parameters))]


def plan_command(plan: LaunchPlan, parameters: Sequence[Parameter], *, torchx: bool = False) -> list[str]:
    """Return the command of a launch; a comment if no component made it."""
    if plan.base is not None:
        return ["#", plan.base.name, "was not made by a component that is known here"]
    arguments, cfg = dict(plan.arguments), dict(plan.cfg)
    return run_command(
        plan.component,
        arguments,
        plan.scheduler,
        cfg,
        plan.workspace,
        plan.overrides,
        parameters,
        usual_workspace=plan.usual_workspace,
        ignores_config=plan.ignores_config,
        torchx=torchx,
    )


def commands_text(model: FormModel, *, torchx: bool = False, most: int = 20) -> str:
    """Return the commands that launch the jobs of a form, one a line, at most the first 20 of a sweep."""
    parameters = model.doc.parameters
    lines = [shlex.join(plan_command(plan, parameters, torchx=torchx)) for plan in islice(model.plans(), most)]
    more = model.launch_count() - len(lines)
    return "\n".join([*lines, *([f"# and {more} more"] if more > 0 else [])])


def launch_command(record: LaunchRecord, settings: LaunchSettings | None = None) -> list[str]:
    """Return the command that repeats a launch."""
    return run_command(
        record.component,
        record.arguments,
        record.scheduler,
        record.cfg,
        record.workspace,
        record.overrides,
        torchx=prefers_torchx(settings),
    )


def ssh_command(port: PublishedPort, login: str) -> list[str]:
    """Return the command that forwards a replica's port to the same port of a user's own machine.

    Args:
        port: the port, published on the loopback address of a machine.
        login: the user and this machine, as in ``alice@login03``.
    """
    return ["ssh", "-N", "-L", f"{port.container_port}:127.0.0.1:{port.host_port}", port.host or login]


def _masked_options(cfg: Mapping[str, Any]) -> dict[str, Any]:
    from ...backends.shared.secrets import MASK, is_secret, mask_data

    return {key: MASK if value and is_secret(key) else mask_data(value, key) for key, value in cfg.items()}
