"""The shell commands that do the same as a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..backends.api import PublishedPort
    from ..backends.journal import LaunchRecord

# Components that TorchX does not have: only our own command launches them.
_OURS = ("demo.",)


def program_for(component: str) -> str:
    """Return ``torchx``, or ``torchx-tui`` for a component that TorchX lacks."""
    return "torchx-tui" if component.startswith(_OURS) else "torchx"


def run_command(component: str, arguments: dict[str, Any], scheduler: str, cfg: dict[str, Any]) -> list[str]:
    """Return the argument list that launches a component with these arguments and run options, secrets masked."""
    from ..backends.secrets import MASK, is_secret
    from ..components import to_command_line
    from ..specs import format_cfg, split_context

    # TorchX knows the current context alone.
    program = "torchx-tui" if split_context(scheduler)[1] or cfg.get("context") else program_for(component)
    command = [program, "run", "--scheduler", scheduler]
    if cfg:
        masked = {key: MASK if value and is_secret(key) else _masked(key, value) for key, value in cfg.items()}
        command += ["--scheduler_args", format_cfg(masked)]
    shown = {name: _masked(name, value) for name, value in arguments.items()}
    return [*command, component, *to_command_line(component, shown)]


def launch_command(record: LaunchRecord) -> list[str]:
    """Return the argument list that repeats a launch."""
    return run_command(record.component, record.arguments, record.scheduler, record.cfg)


def ssh_command(port: PublishedPort, login: str) -> list[str]:
    """Return the argument list that makes a replica's port reachable on a person's own machine, under its own number.

    Args:
        port: the port, published on the loopback address of a machine.
        login: the user and this machine, as in ``alice@login03``.
    """
    return ["ssh", "-N", "-L", f"{port.container_port}:127.0.0.1:{port.host_port}", port.host or login]


def _masked(name: str, value: Any) -> Any:
    from ..backends.secrets import mask_text

    return mask_text(name, value) if isinstance(value, str) else value
