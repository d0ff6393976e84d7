"""A container as a `docker run` command, for people."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..shared.secrets import mask_args, mask_env
from . import labels


def docker_run_line(image: str, command: Sequence[str], kwargs: Mapping[str, Any]) -> str:
    """Return a `docker run` command, secret values masked.

    Args:
        image: the image.
        command: what is run.
        kwargs: arguments by the names of ``docker.DockerClient.containers.create``.
    """
    return shlex.join(["docker", "run", "--detach", *_options(kwargs), image, *mask_args(command)])


def shown_labels(given: Mapping[str, str]) -> dict[str, str]:
    """Return labels for people: the AppDef, which is long and can hold secrets, by its size alone."""
    return {name: f"<{len(value)} bytes of JSON>" if name == labels.APP_DEF else value for name, value in given.items()}


def _options(kwargs: Mapping[str, Any]) -> Iterable[str]:
    for name, option in (("name", "--name"), ("hostname", "--hostname"), ("network", "--network")):
        if kwargs.get(name):
            yield from (option, str(kwargs[name]))
    for name, value in shown_labels(kwargs.get("labels") or {}).items():
        yield from ("--label", f"{name}={value}")
    for name, value in sorted(mask_env(kwargs.get("environment") or {}).items()):
        yield from ("--env", f"{name}={value}")
    if kwargs.get("privileged"):
        yield "--privileged"
    for mount in kwargs.get("mounts") or []:
        read_only = ",readonly" if mount.get("ReadOnly") else ""
        yield from ("--mount", f"type={mount['Type']},source={mount['Source']},target={mount['Target']}{read_only}")
    for device in kwargs.get("devices") or []:
        yield from ("--device", device)
    for port, bound in (kwargs.get("ports") or {}).items():
        yield from ("--publish", _published(port, bound))
    yield from _limit_flags(kwargs)


def _published(port: str, bound: Any) -> str:
    address, host_port = bound if isinstance(bound, tuple) else ("", bound)
    return f"{address}:{host_port or ''}:{port}" if address else f"{host_port or ''}:{port}".lstrip(":")


def _limit_flags(kwargs: Mapping[str, Any]) -> Iterable[str]:
    for request in kwargs.get("device_requests") or []:
        capabilities = ",".join(request["Capabilities"][0])
        yield from ("--gpus", f'count={request["Count"]},"capabilities={capabilities}"')
    for name, option in (("mem_limit", "--memory"), ("shm_size", "--shm-size")):
        if kwargs.get(name):
            yield from (option, str(kwargs[name]))
    if kwargs.get("nano_cpus"):
        yield from ("--cpus", f"{kwargs['nano_cpus'] / 1e9:g}")
    if policy := kwargs.get("restart_policy"):
        yield from ("--restart", f"{policy['Name']}:{policy['MaximumRetryCount']}")
