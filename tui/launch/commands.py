"""Shell commands that do the same as a screen."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .plan import LaunchPlan

if TYPE_CHECKING:
    from ...backends.api import PublishedPort
    from ...backends.history.journal import LaunchRecord
    from ...components.model import Parameter
    from ...settings.config import LaunchSettings
    from .form_model import FormModel

# Components that TorchX does not have.
_OURS = ("demo.",)
# Commands of a sweep.
_MOST_COMMANDS = 20


def prefers_torchx(settings: LaunchSettings | None) -> bool:
    """Return whether the settings prefer TorchX's commands and the project of the current folder has it."""
    from ...guest.interpreter import choose_interpreter
    from ...guest.settings import guest_settings

    if settings is None or not settings.copy_torchx_command:
        return False
    python = choose_interpreter(Path.cwd() / "component.py", guest_settings().python).path
    return os.access(Path(python).with_name("torchx"), os.X_OK)


def run_command(
    launch: LaunchPlan | LaunchRecord, parameters: Sequence[Parameter] | None = None, *, torchx: bool = False
) -> list[str]:
    """Return the command of a launch, with secrets masked; a comment if no component made it.

    Args:
        launch: what is launched.
        parameters: of the component, whose file is read without them.
        torchx: whether TorchX's command is preferred, if that can do the same.
    """
    from ...backends.shared.secrets import mask_args, mask_data, mask_text
    from ...components.command_line import to_command_line
    from ...components.finder import is_script_name
    from ...specs.handles import split_context
    from ...specs.run_options import format_cfg

    component, cfg = launch.component, launch.cfg
    usual_workspace, ignores_config = "", False
    if isinstance(launch, LaunchPlan):
        if launch.base is not None:
            return ["#", launch.base.name, "was not made by a component that is known here"]
        usual_workspace, ignores_config = launch.usual_workspace, launch.ignores_config
    # TorchX knows only the current context, and cannot ignore its config.
    ours = split_context(launch.scheduler)[1] or cfg.get("context") or launch.overrides or ignores_config
    ours = ours or component.startswith(_OURS) or is_script_name(component)
    command = ["torchx" if torchx and not ours else "torchx-tui", "run", "--scheduler", launch.scheduler]
    if cfg:
        command += ["--scheduler_args", format_cfg(_masked_options(cfg))]
    if ignores_config:
        command.append("--ignore-config")
    if launch.workspace or usual_workspace:
        command += ["--workspace", launch.workspace]
    for role, texts in launch.overrides.items():
        for name, text in texts.items():
            command += ["--set", f"{role}.{name}={mask_text(name, text)}"]
    line = to_command_line(component, mask_data(dict(launch.arguments)), parameters)
    return [*command, component, *mask_args(line)]


def commands_text(model: FormModel, *, torchx: bool = False) -> str:
    """Return the commands that launch the jobs of a form, one a line, at most the first 20 of a sweep."""
    parameters = model.doc.parameters
    lines = [shlex.join(run_command(plan, parameters, torchx=torchx)) for plan in islice(model.plans(), _MOST_COMMANDS)]
    more = model.launch_count() - len(lines)
    return "\n".join([*lines, *([f"# and {more} more"] if more > 0 else [])])


def launch_command(record: LaunchRecord, settings: LaunchSettings | None = None) -> list[str]:
    """Return the command that repeats a launch."""
    return run_command(record, torchx=prefers_torchx(settings))


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
