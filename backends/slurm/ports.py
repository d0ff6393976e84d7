"""Ports at which a running job serves, read in its log: TensorBoard, Jupyter and others print a URL there."""

from __future__ import annotations

import os
import platform
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...base.files import open_file, read_tail, user_name
from ...specs.status import AppState
from ..types import PublishedPort
from .replicas import Replica
from .values import expand_nodes

# Servers print it as they start; a log may be of gigabytes.
_HEAD_BYTES, _TAIL_BYTES = 1 << 18, 1 << 16
_MAX_REPLICAS, _MAX_PORTS = 16, 8
_URL = re.compile(rb"https?://(?P<host>\[[0-9a-fA-F:]+\]|[\w.-]+):(?P<port>[1-9]\d{1,4})(?![\w.])")
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]"))
_ANY = frozenset(("0.0.0.0", "[::]"))  # noqa: S104 - what a server prints


def served_ports(replicas: Iterable[Replica]) -> list[PublishedPort]:
    """Return the ports that running replicas named in their logs, each with the ssh command that reaches it.

    A URL of another machine is none of theirs. Steps whose output is in the batch script's file are found there.
    """
    found: list[PublishedPort] = []
    seen: set[tuple[str, int]] = set()
    running = [each for each in replicas if each.job.app_state is AppState.RUNNING and each.job.node_list]
    for replica in running[:_MAX_REPLICAS]:
        nodes = expand_nodes(replica.node or replica.job.node_list)
        for path in filter(None, (replica.stdout, replica.stderr)):
            for host, port in _urls(path):
                node = _node_of(host, nodes)
                if node and (node, port) not in seen and len(found) < _MAX_PORTS:
                    seen.add((node, port))
                    command = ssh_line(node, port, is_loopback=host in _LOOPBACK)
                    found.append(PublishedPort(replica.role, replica.number, "", port, node, port, command))
    return found


def ssh_line(node: str, port: int, *, is_loopback: bool) -> str:
    """Return the command that makes a node's port reachable on a person's own machine, through this login node.

    Args:
        node: the node.
        port: the port.
        is_loopback: whether it is on the node's loopback address alone: then ssh has to go on to the node itself.
    """
    login = f"{user_name()}@{platform.node()}"
    if is_loopback:
        return shlex.join(["ssh", "-N", "-L", f"{port}:localhost:{port}", "-J", login, f"{user_name()}@{node}"])
    return shlex.join(["ssh", "-N", "-L", f"{port}:{node}:{port}", login])


def _node_of(host: str, nodes: list[str]) -> str:
    """Return the node that a URL's host is, empty for another machine."""
    if host in _LOOPBACK or host in _ANY:
        return nodes[0] if nodes else ""
    short = host.partition(".")[0]
    return next((node for node in nodes if node in (host, short)), "")


def _urls(path: Path) -> Iterator[tuple[str, int]]:
    for text in dict.fromkeys((_head(path), read_tail(path, _TAIL_BYTES))):
        for url in _URL.finditer(text):
            if int(url["port"]) < 1 << 16:
                yield url["host"].decode(), int(url["port"])


def _head(path: Path) -> bytes:
    try:
        descriptor = open_file(path)
    except OSError:
        return b""
    try:
        return os.read(descriptor, _HEAD_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
