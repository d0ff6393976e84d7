"""The AppDef of an app: kept in a label of its first replica, else as far as its containers tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...specs import AppDef, BindMount, DeviceMount, Mount, Resource, Role, VolumeMount
from ..kept_app_def import LAUNCH_VARIABLES, kept_text, read_kept
from . import labels

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
    for one in containers:
        found = one.get("Labels") or {}
        text, left_out = found.get(labels.APP_DEF, ""), found.get(labels.APP_DEF_LEFT_OUT, "")
        if text or left_out:
            return read_kept(text, left_out, notes)
    return None


def roles_of(inspected: Iterable[Mapping[str, Any]]) -> list[Role]:
    """Return the roles that containers tell of, for apps whose AppDef is not kept; macros stand replaced in them.

    Args:
        inspected: the app's containers as ``/containers/ID/json`` gives them, in order.
    """
    roles: dict[str, Role] = {}
    for one in inspected:
        name = (one["Config"].get("Labels") or {}).get(labels.ROLE_NAME, "")
        if name in roles:
            roles[name].num_replicas += 1
        else:
            roles[name] = _role(name, one)
    return list(roles.values())


def _role(name: str, one: Mapping[str, Any]) -> Role:
    config, host = one["Config"], one.get("HostConfig") or {}
    entrypoint, *args = [*(config.get("Cmd") or [""])]
    env = dict(pair.partition("=")[::2] for pair in config.get("Env") or [])
    for variable in LAUNCH_VARIABLES:
        env.pop(variable, None)
    return Role(
        name,
        config.get("Image", ""),
        entrypoint=entrypoint,
        args=args,
        env=env,
        num_replicas=1,
        max_retries=(host.get("RestartPolicy") or {}).get("MaximumRetryCount") or 0,
        resource=_resource(host),
        mounts=_mounts(host),
    )


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
    for one in host.get("Mounts") or []:
        source, target, read_only = one.get("Source", ""), one.get("Target", ""), bool(one.get("ReadOnly"))
        if one.get("Type") == "bind":
            mounts.append(BindMount(source, target, read_only))
        elif one.get("Type") == "volume":
            mounts.append(VolumeMount(source, target, read_only))
    for one in host.get("Devices") or []:
        mounts.append(DeviceMount(one["PathOnHost"], one["PathInContainer"], one.get("CgroupPermissions") or "rwm"))
    return mounts
