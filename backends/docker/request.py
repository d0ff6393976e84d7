"""The request of local_docker: the containers of an app, as TorchX would create them."""

from __future__ import annotations

import fnmatch
import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ... import __version__
from ...base.files import user_name
from ...specs.errors import AppDefError
from ...specs.mounts import BindMount, DeviceMount, VolumeMount
from ...specs.named_resources_aws import EFA_DEVICE, NEURON_DEVICE
from ...specs.roles import AppDef, Role, macros
from ..api import check_launchable
from ..options import StructuredOpts
from ..shared.kept_app_def import RANK0_HOST
from ..shared.progress import while_wanted
from ..shared.readable_yaml import readable_yaml
from ..shared.secrets import mask_data
from ..types import NameFault
from . import labels
from .app_def import app_def_labels
from .networks import NETWORK
from .run_line import docker_run_line, shown_labels

logger = logging.getLogger(__name__)

_ALLOWED = re.compile(r"[a-zA-Z0-9_.-]+")
_MOST = 30
# Linux's limit of a host name is 64 bytes, a resolver's of one label 63.
_LONGEST_HOST_NAME = 63
# The files of named devices, numbered from 0.
_DEVICE_FILES = {EFA_DEVICE: "/dev/infiniband/uverbs", NEURON_DEVICE: "/dev/neuron"}


def container_name(app_id: str, role: str, number: int) -> str:
    """Return a container's name, TorchX's: so that names stay short, the ends of the id and the beginnings of roles."""
    return re.sub(r"^[^a-zA-Z0-9]+", "", f"{app_id[-_MOST:]}-{role[:_MOST]}-{number}")


def host_name(name: str, number: int) -> str:
    """Return a container's host name: its name, less of its role where the kernel would refuse so long a one."""
    end = f"-{number}"
    return name if len(name) <= _LONGEST_HOST_NAME else name[: _LONGEST_HOST_NAME - len(end)] + end


def check_app(app: AppDef) -> None:
    """Refuse an app that cannot be containers.

    Raises:
        AppDefError: a name has characters that a container's cannot have, two roles would have the same containers,
            or there is nothing to run.
    """
    check_launchable(app)
    for fault in name_faults(app):
        if fault.refused:
            raise AppDefError(f"{fault.what} is {fault.name!r}: {fault.words}")
    for role in app.roles:
        _check_ports(role.name, role.port_map)


def name_faults(app: AppDef) -> Iterator[NameFault]:
    """Yield the names of an app and its roles that containers cannot have, and those that they have in part."""
    seen: dict[str, str] = {}
    for role, name in [("", app.name), *((role.name, role.name) for role in app.roles)]:
        short = name[:_MOST]
        if not _ALLOWED.fullmatch(name):
            allowed = "it can have letters and digits of ASCII, and _ . -"
            yield NameFault(role, name, "containers are named after it", allowed)
        elif role and short in seen:
            pair = f"the roles {seen[short]} and {name} would have containers of one name"
            yield NameFault(role, name, f"{pair}, which has the first {_MOST} characters", "rename one of them")
        elif role and short != name:
            reason = f"containers have its first {_MOST} characters only"
            yield NameFault(role, name, reason, f"they are named {short}", refused=False)
        if role:
            seen.setdefault(short, name)


def _check_ports(role: str, port_map: dict[str, int]) -> None:
    for name, port in port_map.items():
        if not 0 < port < 65536:
            raise AppDefError(f"Role {role}: port {port} ({name}) is not valid: ports are 1 to 65535")


@dataclass
class DockerOpts(StructuredOpts):
    """Names and texts are TorchX's, as `torchx runopts local_docker` prints them; `pull` is ours."""

    copy_env: list[str] | None = None
    """List of glob patterns of environment variables to copy if not set in AppDef. Ex: FOO_*"""

    env: dict[str, str] | None = None
    """Environment variables to be passed to the run. The separator sign can be either comma or semicolon (e.g. ENV1:v1,ENV2:v2,ENV3:v3 or ENV1:V1;ENV2:V2). Environment variables from env will be applied on top of the ones from copy_env."""  # noqa: E501

    privileged: bool = False
    """If true runs the container with elevated permissions. Equivalent to running with `docker run --privileged`."""

    pull: bool = True
    """If true pulls images before the launch; one that cannot be pulled is taken as it is on the engine's machine."""


@dataclass
class DockerContainer:
    """One container.

    Args:
        image: what it runs in.
        command: what it runs; the image's own entrypoint stays in front of it.
        kwargs: further arguments, by the names of ``docker.DockerClient.containers.create``.
    """

    image: str
    command: list[str]
    kwargs: dict[str, Any]

    @property
    def where(self) -> str:
        """Which replica it is, such as ``trainer/0``."""
        return f"{self.kwargs['labels'][labels.ROLE_NAME]}/{self.kwargs['labels'][labels.REPLICA_ID]}"


@dataclass
class DockerJob:
    """What is created for one app.

    Args:
        app_id: the app's id.
        containers: its containers, in order.
    """

    app_id: str
    containers: list[DockerContainer] = field(default_factory=list)

    def __str__(self) -> str:
        shown = [_as_data(container) for container in self.containers]
        lines = "\n".join(
            docker_run_line(container.image, container.command, container.kwargs) for container in self.containers
        )
        return readable_yaml({"app_id": self.app_id, "containers": shown, "docker_run": lines + "\n"})


def make_request(app: AppDef, app_id: str, session: str, opts: DockerOpts) -> DockerJob:
    """Return the request for an app.

    Args:
        app: the app.
        app_id: the id that it gets.
        session: the session part of its handle.
        opts: the run options.

    Raises:
        AppDefError: a role has a mount of an unknown kind.
    """
    given = {**_copied(opts.copy_env or []), **(opts.env or {})}
    of_app = {
        labels.APP_NAME: app.name,
        labels.SESSION: session,
        labels.USER: user_name(),
        labels.REPLICAS: str(sum(role.num_replicas for role in app.roles)),
    }
    rank0 = container_name(app_id, app.roles[0].name, 0)
    job = DockerJob(app_id)
    for index, role in enumerate(app.roles):
        for number in while_wanted(range(role.num_replicas)):
            values = macros.Values(img_root="", app_id=app_id, replica_id=str(number), rank0_env=RANK0_HOST)
            made = _container(values.apply(role), app_id, number, opts)
            launched = {RANK0_HOST: rank0, "TORCHX_IMAGE": made.image}
            made.kwargs["environment"] = {**given, **made.kwargs["environment"], **launched}
            made.kwargs["labels"].update(of_app, **{labels.ROLE_INDEX: str(index)})
            job.containers.append(made)
    job.containers[0].kwargs["labels"].update(app_def_labels(app))
    return job


def _container(role: Role, app_id: str, number: int, opts: DockerOpts) -> DockerContainer:
    name = container_name(app_id, role.name, number)
    mounts, devices = _mounts(role)
    kwargs: dict[str, Any] = {
        "name": name,
        "environment": dict(role.env),
        "labels": {
            labels.VERSION: __version__,
            labels.APP_ID: app_id,
            labels.ROLE_NAME: role.name,
            labels.REPLICA_ID: str(number),
        },
        "hostname": host_name(name, number),
        "privileged": bool(opts.privileged),
        "network": NETWORK,
        "mounts": mounts,
        "devices": devices,
    }
    if role.port_map:
        # The engine chooses a free port at the start: nothing can take it in between.
        kwargs["ports"] = {f"{port}/tcp": ("127.0.0.1", None) for port in role.port_map.values()}
    if role.max_retries > 0:
        kwargs["restart_policy"] = {"Name": "on-failure", "MaximumRetryCount": role.max_retries}
    kwargs.update(_limits(role))
    return DockerContainer(role.image, [role.entrypoint, *role.args], kwargs)


def _limits(role: Role) -> dict[str, Any]:
    from docker.types import DeviceRequest

    resource = role.resource
    limits: dict[str, Any] = {}
    if resource.memMB >= 0:
        # Data loaders share memory: Docker's 64 MB would not do.
        limits["mem_limit"] = limits["shm_size"] = f"{int(resource.memMB)}m"
    if resource.cpu >= 0:
        limits["nano_cpus"] = int(resource.cpu * 1e9)
    if resource.gpu > 0:
        limits["device_requests"] = [DeviceRequest(count=resource.gpu, capabilities=[["compute", "utility"]])]
    return limits


def _mounts(role: Role) -> tuple[list[Any], list[str]]:
    """Return a role's mounts and its devices."""
    from docker.types import Mount

    mounts: list[Any] = []
    devices: list[str] = []
    for mount in [*role.mounts, *_named_devices(role)]:
        if isinstance(mount, BindMount):
            mounts.append(Mount(mount.dst_path, mount.src_path, type="bind", read_only=mount.read_only))
        elif isinstance(mount, VolumeMount):
            mounts.append(Mount(mount.dst_path, mount.src, type="volume", read_only=mount.read_only))
        elif isinstance(mount, DeviceMount):
            devices.append(f"{mount.src_path}:{mount.dst_path}:{mount.permissions}")
        else:
            raise AppDefError(f"Role {role.name}: {mount!r} is not a mount: use BindMount, VolumeMount or DeviceMount")
    return mounts, devices


def _named_devices(role: Role) -> list[DeviceMount]:
    devices = []
    for name, count in role.resource.devices.items():
        if name not in _DEVICE_FILES:
            logger.warning("role %s: the device %s is not known here and left out", role.name, name)
            continue
        files = [f"{_DEVICE_FILES[name]}{number}" for number in range(count)]
        devices += [DeviceMount(file, file) for file in files]
    return devices


def unknown_devices(role: Role) -> list[str]:
    """Return the named devices of a role that no file is known for: they are left out."""
    return [name for name in role.resource.devices if name not in _DEVICE_FILES]


def _copied(patterns: list[str]) -> dict[str, str]:
    """Return the variables of this process that patterns choose."""
    names = {name for pattern in patterns for name in fnmatch.filter(os.environ, pattern)}
    return {name: os.environ[name] for name in sorted(names)}


def _as_data(container: DockerContainer) -> dict[str, Any]:
    """Return a container as plain data, secret values masked."""
    shown: dict[str, Any] = {"image": container.image, "command": container.command, **container.kwargs}
    shown["environment"] = dict(sorted((container.kwargs.get("environment") or {}).items()))
    shown["labels"] = shown_labels(container.kwargs.get("labels") or {})
    return mask_data(_plain(shown))


def _plain(value: Any) -> Any:
    """Return the SDK's types, which are mappings and sequences of its own, as Python's."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value
