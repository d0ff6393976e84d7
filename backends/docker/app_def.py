"""The AppDef of an app: kept in a label of its first replica, else reconstructed from its containers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from ...specs.mounts import BindMount, DeviceMount, Mount, VolumeMount
from ...specs.resources import Resource
from ...specs.roles import AppDef, Role
from ..shared.found_macros import Place, command_as_given, variable_as_given
from ..shared.kept_app_def import LAUNCH_VARIABLES, RANK0_HOST, kept_text, read_kept
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
    """Return the roles that containers tell of, for apps whose AppDef is not kept.

    Macros that stand replaced in arguments and variables are found again.

    Args:
        inspected: the app's containers as ``/containers/ID/json`` gives them, in order.
        variables_of: gives the variables, ``name=value``, that an image of that id brings with it.
        notes: gets what could not be rebuilt.
    """
    by_role: dict[str, list[ContainerDetails]] = {}
    for container in inspected:
        by_role.setdefault((container["Config"].get("Labels") or {}).get(labels.ROLE_NAME, ""), []).append(container)
    return [_role(name, replicas, variables_of, notes) for name, replicas in by_role.items()]


def _role(
    name: str, replicas: list[ContainerDetails], variables_of: Callable[[str], Collection[str]], notes: list[str]
) -> Role:
    places = [_place(container) for container in replicas]
    configs = [container["Config"] for container in replicas]
    commands = [list(config.get("Cmd") or [""]) for config in configs]
    entrypoint, *args = command_as_given(commands, places, name, notes)
    host = replicas[0].get("HostConfig") or {}
    return Role(
        name,
        configs[0].get("Image", ""),
        entrypoint=entrypoint,
        args=args,
        env=_environment(name, replicas, places, variables_of(replicas[0].get("Image", "")), notes),
        num_replicas=len(replicas),
        max_retries=(host.get("RestartPolicy") or {}).get("MaximumRetryCount") or 0,
        resource=_resource(host),
        mounts=_mounts(host),
    )


def _place(container: ContainerDetails) -> Place:
    container_labels = container["Config"].get("Labels") or {}
    return Place(container_labels.get(labels.APP_ID, ""), labels.replica_number(container_labels), (RANK0_HOST,))


def _environment(
    role: str, replicas: list[ContainerDetails], places: list[Place], of_image: Collection[str], notes: list[str]
) -> dict[str, str]:
    """Return the variables that a role gives to its containers: all but those of the image and of the launch."""
    values = [dict(_pairs(container["Config"].get("Env") or [])) for container in replicas]
    return {
        name: variable_as_given(name, values, places, role, notes)
        for name, value in values[0].items()
        if name not in LAUNCH_VARIABLES and f"{name}={value}" not in of_image
    }


def _pairs(variables: Iterable[str]) -> Iterator[tuple[str, str]]:
    for variable in variables:
        name, _, value = variable.partition("=")
        yield name, value


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
