"""Ports at which a running job serves, read in its log: TensorBoard, Jupyter and others print a URL there."""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from ...base.files import open_file, user_name
from ...specs.status import AppState
from ..types import PublishedPort
from .replicas import Replica
from .values import expand_nodes

# Servers print it as they start; a log may be of gigabytes.
_HEAD_BYTES = 1 << 18
_MAX_REPLICAS, _MAX_PORTS = 16, 8
_URL = re.compile(r"https?://(?P<host>\[[0-9a-fA-F:]+\]|[\w.-]+):(?P<port>[1-9]\d{1,4})(?![\w.])")
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]"))
_ANY = frozenset(("0.0.0.0", "[::]"))  # noqa: S104 - what a server prints


def served_ports(replicas: Iterable[Replica]) -> list[PublishedPort]:
    """Return the ports that running replicas named in their logs, each with the ssh command that reaches it.

    A URL of another machine is none of theirs. Steps whose output is in the batch script's file are found there.
    """
    found: dict[tuple[str, int], PublishedPort] = {}
    running = [each for each in replicas if each.job.app_state is AppState.RUNNING and each.job.node_list]
    for replica in running[:_MAX_REPLICAS]:
        nodes = expand_nodes(replica.node or replica.job.node_list)
        for url in _URL.finditer("".join(map(_head, filter(None, (replica.stdout, replica.stderr))))):
            host, port = url["host"], int(url["port"])
            is_local = host in _LOOPBACK
            names = (host, host.partition(".")[0])
            node = next((node for node in nodes if is_local or host in _ANY or node in names), "")
            if node and port < 1 << 16 and len(found) < _MAX_PORTS:
                command = ssh_line(node, port, is_loopback=is_local)
                port_of = PublishedPort(replica.role, replica.number, "", port, node, port, command)
                found.setdefault((node, port), port_of)
    return [*found.values()]


def ssh_line(node: str, port: int, *, is_loopback: bool) -> str:
    """Return the command that makes a node's port reachable on a person's own machine, through this login node.

    Args:
        node: the node.
        port: the port.
        is_loopback: whether it is on the node's loopback address alone: then ssh has to go on to the node itself.
    """
    login = f"{user_name()}@{platform.node()}"
    target, *jump = ("localhost", "-J", login, f"{user_name()}@{node}") if is_loopback else (node, login)
    return shlex.join(["ssh", "-N", "-L", f"{port}:{target}:{port}", *jump])


def _head(path: Path) -> str:
    """Return the beginning of a log, empty where it cannot be read."""
    try:
        with open(open_file(path), "rb") as file:  # noqa: PTH123 - of a descriptor
            return file.read(_HEAD_BYTES).decode("utf-8", "replace") + "\n"
    except OSError:
        return ""
