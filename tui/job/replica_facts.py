"""What is known of one replica, in lines: its state, its ports, what it uses."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.widget import Widget

from ...base.files import user_name
from ...logs.text.sanitize import plain
from ...specs.status import ReplicaStatus
from ..format import clock, duration
from ..launch.commands import ssh_command
from ..ui.job_cells import state_text
from ..ui.palette import Text
from ..ui.theme import glyphs_of, now_of

if TYPE_CHECKING:
    from ...backends.api import PublishedPort, ReplicaUsage

_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], most: float, width: int) -> str:
    """Return the last values as bars.

    Args:
        values: the figures, the latest last.
        most: what a full bar stands for.
        width: cells; fewer values leave the left empty.
    """
    shown = values[-width:] if width > 0 else []
    most = max(most, *shown, 1e-9) if shown else 1.0
    bars = (_BARS[min(len(_BARS) - 1, int(max(0.0, value) / most * len(_BARS)))] for value in shown)
    return "".join(bars).rjust(width)


def spark_words(values: Sequence[float]) -> str:
    """Return the least, the mean and the largest value."""
    if not values:
        return ""
    return f"min {figure(min(values))}  avg {figure(sum(values) / len(values))}  max {figure(max(values))}"


def figure(value: float) -> str:
    """Return a figure with one decimal below ten, else with none."""
    return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"


_GIB = 1 << 30


def replica_lines(replica: ReplicaStatus, widget: Widget) -> tuple[Text, ...]:
    """Return what is known of one replica."""
    head = Text(f"{plain(replica.role)}/{replica.id}", "bold $style-text")
    head.append("  ")
    head.append_text(state_text(replica.state, glyphs_of(widget.app)))
    if replica.signal:
        head.append(f"  {replica.signal}", "$style-text")
    elif replica.exit_code is not None:
        head.append(f"  exit {replica.exit_code}", "$style-text")
    lines = [head]
    facts = []
    if replica.started_at is not None and replica.finished_at is not None:
        facts.append(duration(replica.finished_at - replica.started_at))
    if replica.restarts:
        facts.append(f"{replica.restarts} restarts")
    if replica.pid is not None:
        facts.append(f"pid {replica.pid}")
    if replica.node:
        facts.append(f"on {plain(replica.node)}")
    if replica.node and replica.hostaddr and replica.hostaddr != replica.hostname:
        facts.append(plain(replica.hostaddr))
    if replica.hostname != replica.node:
        facts.append(plain(replica.hostname))
    lines.append(Text(", ".join(facts), "$style-muted"))
    for label, at in (("started", replica.started_at), ("ended", replica.finished_at)):
        if at is not None:
            line = Text(f"{label:<9}", "$style-faint")
            line.append(clock(at, now_of(widget.app)), "$style-muted")
            lines.append(line)
    if replica.reason and replica.reason != f"exit {replica.exit_code}":
        lines.append(Text(plain(replica.reason), "$style-muted"))
    return tuple(lines)


def usage_lines(samples: Sequence[ReplicaUsage], width: int, *, ascii_only: bool) -> list[Text]:
    """Return a line for each thing that is used: its name, its course, and what it is now of what there is.

    Args:
        samples: what was measured, the latest last.
        width: cells of the course.
        colors: the palette.
        ascii_only: the course is told in figures.
    """
    last = samples[-1]
    courses = (
        ("cpu", _course(samples, "cpu"), last.cpu_total, "cores"),
        # None where there is no limit.
        ("mem", _course(samples, "memory", _GIB), last.memory_total and last.memory_total / _GIB, "GB"),
        ("gpu", _course(samples, "gpu"), last.gpus, "busy"),
        ("vram", _course(samples, "gpu_memory", _GIB), (last.gpu_memory_total or 0) / _GIB, "GB"),
    )
    lines = []
    for name, values, total, unit in courses:
        if not values or total == 0:
            continue
        line = Text(f"{name:<5}", "$style-faint")
        course = spark_words(values) if ascii_only else sparkline(values, total or 0.0, width)
        line.append(course.ljust(width), "$style-faint" if ascii_only else "$style-spark")
        line.append(f"  {figure(values[-1])}{f' of {figure(total)}' if total else ''} {unit}", "$style-muted")
        lines.append(line)
    return lines


def _course(samples: Sequence[ReplicaUsage], what: str, unit: float = 1.0) -> list[float]:
    values = (getattr(sample, what) for sample in samples)
    return [value / unit for value in values if value is not None]


def port_lines(ports: Sequence[PublishedPort]) -> list[Text]:
    """Return two lines for each port: its number on the engine's loopback address, and the command that reaches it."""
    lines = []
    for port in ports:
        line = Text(f"{'port':<9}", "$style-faint")
        line.append(f"{port.host_port}", "$style-text")
        if port.command:
            line.append(f" for {port.container_port} of {plain(port.host) or 'the pod'}", "$style-muted")
        else:
            line.append(f"{f' on {plain(port.host)}' if port.host else ''} for {port.container_port}", "$style-muted")
        line.append(f"  {plain(port.name)}", "$style-faint")
        lines += [line, Text(f"$ {plain(reach_line(port))}", "$style-faint")]
    return lines


def reach_line(port: PublishedPort) -> str:
    """Return the command that makes a port reachable on a person's own machine."""
    return port.command or shlex.join(ssh_command(port, f"{user_name()}@{os.uname().nodename}"))
