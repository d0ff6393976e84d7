"""The AppDef of an app: kept in a label of its first replica, else made of its containers' commands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ...specs.mounts import BindMount, DeviceMount, Mount, VolumeMount
from ...specs.resources import Resource
from ...specs.roles import AppDef, Role
from ..shared.kept_app_def import LAUNCH_VARIABLES, escape_macros, kept_text, read_kept
from . import labels
from .containers import ContainerDetails

_MEGABYTE = 1 << 20


def app_def_labels(app: AppDef) -> dict[str, str]:
    """Return the label that keeps an AppDef, or the one that says why it is not kept."""
    text, left_out = kept_text(app, labels.APP_DEF_LIMIT)
    return {labels.APP_DEF_LEFT_OUT: left_out} if left_out else {labels.APP_DEF: text}


def read_app_def(containers: Iterable[Mapping[str, Any]], notes: list[str]) -> AppDef | None:
    """Return the AppDef that a label keeps, None where none does.

    Args:
        containers: the app's, summaries of ``/containers/json``.
        notes: gets why there is none, where that is known.
    """
    for container in containers:
        container_labels = container.get("Labels") or {}
        text, left_out = container_labels.get(labels.APP_DEF, ""), container_labels.get(labels.APP_DEF_LEFT_OUT, "")
        if text or left_out:
            return read_kept(text, left_out, notes)
    return None


def roles_of(
    inspected: Iterable[ContainerDetails], variables_of: Callable[[str], Collection[str]], notes: list[str]
) -> list[Role]:
    """Return the roles of an app whose AppDef is not kept: each runs what its first replica runs.

    Args:
        inspected: the app's containers as ``/containers/ID/json`` gives them, in order.
        variables_of: returns the variables, ``name=value``, that an image sets.
        notes: gets a sentence about each role whose replicas differ.
    """
    by_role: dict[str, list[ContainerDetails]] = {}
    for container in inspected:
        by_role.setdefault((container["Config"].get("Labels") or {}).get(labels.ROLE_NAME, ""), []).append(container)
    return [_role(name, replicas, variables_of, notes) for name, replicas in by_role.items()]


def _role(
    name: str, replicas: list[ContainerDetails], variables_of: Callable[[str], Collection[str]], notes: list[str]
) -> Role:
    first, host = replicas[0], replicas[0].get("HostConfig") or {}
    launches = [(_command(container), _environment(container)) for container in replicas]
    if any(launch != launches[0] for launch in launches):
        notes.append(f"{name}: commands or variables of its replicas differ: those of the first are used for all")
    (entrypoint, *args), env = launches[0]
    of_image = variables_of(first.get("Image", ""))
    return Role(
        name,
        first["Config"].get("Image", ""),
        entrypoint=entrypoint,
        args=args,
        env={key: escape_macros(value) for key, value in env.items() if f"{key}={value}" not in of_image},
        num_replicas=len(replicas),
        max_retries=(host.get("RestartPolicy") or {}).get("MaximumRetryCount") or 0,
        resource=_resource(host),
        mounts=_mounts(host),
    )


def _command(container: ContainerDetails) -> list[str]:
    return [escape_macros(part) for part in container["Config"].get("Cmd") or [""]]


def _environment(container: ContainerDetails) -> dict[str, str]:
    """Return the variables of a container without those that every launch adds."""
    pairs = (variable.partition("=") for variable in container["Config"].get("Env") or [])
    return {name: value for name, _, value in pairs if name not in LAUNCH_VARIABLES}


def _resource(host: Mapping[str, Any]) -> Resource:
    gpus = sum(request.get("Count") or 0 for request in host.get("DeviceRequests") or [])
    cpu = (host.get("NanoCpus") or 0) / 1e9
    # Where no limit was set, nothing was asked for.
    memory = (host.get("Memory") or 0) // _MEGABYTE
    return Resource(cpu=_whole(cpu) if cpu else -1, gpu=max(0, gpus), memMB=memory or -1)


def _whole(cpu: float) -> Any:
    return int(cpu) if cpu == int(cpu) else cpu


def _mounts(host: Mapping[str, Any]) -> list[Mount]:
    mounts: list[Mount] = []
    for entry in host.get("Mounts") or []:
        source, target, read_only = entry.get("Source", ""), entry.get("Target", ""), bool(entry.get("ReadOnly"))
        if entry.get("Type") == "bind":
            mounts.append(BindMount(source, target, read_only))
        elif entry.get("Type") == "volume":
            mounts.append(VolumeMount(source, target, read_only))
    for entry in host.get("Devices") or []:
        mounts.append(
            DeviceMount(entry["PathOnHost"], entry["PathInContainer"], entry.get("CgroupPermissions") or "rwm")
        )
    return mounts
