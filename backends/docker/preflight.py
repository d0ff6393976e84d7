"""Faults of an engine, and of a launch on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...base.files import path_exists
from ...logs.text.sanitize import plain
from ...specs.errors import BackendUnavailableError
from ...specs.mounts import BindMount
from ...specs.roles import AppDef, Role
from ..docker_engine.client import Engine
from ..docker_engine.images import LOCAL_REGISTRY
from ..shared.machine import machine_status
from ..types import ClusterPool, ClusterStatus, Finding
from ..workspace.scripts import workspace_findings
from .request import DockerOpts, unknown_devices

_MEGABYTE = 1 << 20
# A form waits for the answer.
_TIMEOUT_S = 5.0
_MIN_MEMORY_MB = 6  # the engine refuses less
# Prefixes that Podman adds to short names of images.
_IMPLIED_REGISTRIES = (LOCAL_REGISTRY, "docker.io/library/", "docker.io/")


def engine_info(engine: Engine) -> dict[str, Any]:
    """Return what the engine says of itself and its machine.

    Raises:
        BackendUnavailableError: the engine cannot be reached.
    """
    with engine.translate_errors():
        client = engine.new_client(_TIMEOUT_S)
        try:
            info: dict[str, Any] = client.api.info()
            return info
        finally:
            client.close()


def engine_cluster(engine: Engine) -> ClusterStatus:
    """Return the engine's machine; of another machine its size only.

    Raises:
        BackendUnavailableError: the engine cannot be reached.
    """
    info = engine_info(engine)
    running = info.get("ContainersRunning") or 0
    note = f"{running} container{'s' if running != 1 else ''} running" if running else ""
    if not engine.is_remote:
        return machine_status(note)
    size = f"{info.get('NCPU')} CPUs, {(info.get('MemTotal') or 0) / (1 << 30):.0f} GB; how much is free is not known"
    name = plain(str(info.get("Name") or engine.host))
    return ClusterStatus([ClusterPool(name, "machine", note=", ".join(filter(None, (size, note))))])


def engine_findings(engine: Engine) -> list[Finding]:
    """List the engine's version and size, or why it cannot be used."""
    try:
        info = engine_info(engine)
    except BackendUnavailableError as error:
        return [_unavailable(error)]
    where = engine.host.removeprefix("unix://")
    memory = (info.get("MemTotal") or 0) / 1e9
    size = f"{info.get('NCPU')} cpu, {memory:.0f} GB, {info.get('Driver')}"
    name = "Podman" if "BuildahVersion" in info else "Docker"
    findings = [Finding("ok", f"{name} {info.get('ServerVersion')} at {where}: {size}")]
    if "nvidia" in (info.get("Runtimes") or {}):
        findings.append(Finding("ok", "GPUs: the NVIDIA runtime is there"))
    if any("rootless" in option for option in info.get("SecurityOptions") or []):
        findings.append(Finding("warning", "the engine is rootless", "limits of cpu and memory may not be enforced"))
    if engine.is_remote:
        findings.append(
            Finding("warning", "the engine is on another machine", "bind mounts and ports are that machine's")
        )
    return findings


def _unavailable(error: BackendUnavailableError) -> Finding:
    return Finding("error", error.what, error.hint)


def launch_findings(engine: Engine, app: AppDef, opts: DockerOpts) -> list[Finding]:
    """List what would go wrong with a launch."""
    try:
        with engine.translate_errors():
            api = engine.client().api
            info = api.info()
            here = {name for image in api.images() for name in image_names(image)}
    except BackendUnavailableError as error:
        return [_unavailable(error)]
    findings = list(_image_findings(app, opts, here))
    for role in app.roles:
        findings += _limit_findings(role, info)
        findings += _device_findings(role, info)
        findings += workspace_findings(role)
        if not engine.is_remote:
            findings += _mount_findings(role)
    return findings


def image_names(image: dict[str, Any]) -> Iterable[str]:
    """Yield the names that an image can be asked for by: tags, tags with digests, Podman's tags as Docker has them."""
    tags, digests = image.get("RepoTags") or [], image.get("RepoDigests") or []
    yield from (*tags, *digests, image["Id"])
    for tag in tags:
        yield from (tag.removeprefix(prefix) for prefix in _IMPLIED_REGISTRIES if tag.startswith(prefix))
        name, _, _ = tag.rpartition(":")
        yield from (f"{tag}@{digest.rpartition('@')[2]}" for digest in digests if digest.startswith(f"{name}@"))


def _image_findings(app: AppDef, opts: DockerOpts, here: set[str]) -> Iterable[Finding]:
    for image in dict.fromkeys(role.image for role in app.roles):
        if image in here or f"{image}:latest" in here:
            continue
        if not opts.pull:
            yield Finding("error", f"the image {image} is not here, and pulling is off", "set pull, or pull it first")
        elif image.startswith("sha256:"):
            yield Finding("error", f"the image {image} is not here, and cannot be pulled", "build the workspace again")
        else:
            yield Finding("warning", f"the image {image} is not here", "it is pulled first, which may take minutes")


def _limit_findings(role: Role, info: dict[str, Any]) -> Iterable[Finding]:
    resource = role.resource
    cpus, memory = info.get("NCPU") or 0, (info.get("MemTotal") or 0) // _MEGABYTE
    if cpus and resource.cpu > cpus:
        yield Finding(
            "error", f"{role.name}: {resource.cpu} cpu asked for, the engine has {cpus}", f"ask for {cpus} at most"
        )
    if 0 < resource.memMB < _MIN_MEMORY_MB:
        yield Finding(
            "error", f"{role.name}: {resource.memMB} MB of memory is too little", f"{_MIN_MEMORY_MB} is least"
        )
    wanted = resource.memMB * role.num_replicas
    if memory and wanted > memory:
        yield Finding(
            "warning", f"{role.name}: {wanted} MB asked for in all, the engine has {memory}", "it may run short"
        )


def _device_findings(role: Role, info: dict[str, Any]) -> Iterable[Finding]:
    if role.resource.gpu > 0 and "nvidia" not in (info.get("Runtimes") or {}):
        yield Finding(
            "warning",
            f"{role.name}: {role.resource.gpu} gpu asked for, the engine has no NVIDIA runtime",
            "install the NVIDIA Container Toolkit there, or ask for gpu=0",
        )
    for name in unknown_devices(role):
        yield Finding("warning", f"{role.name}: the device {name} is not known here", "it is left out")


def _mount_findings(role: Role) -> Iterable[Finding]:
    for mount in role.mounts:
        if isinstance(mount, BindMount) and not path_exists(mount.src_path):
            yield Finding("error", f"{role.name}: the mount's source {mount.src_path} does not exist", "create it")
