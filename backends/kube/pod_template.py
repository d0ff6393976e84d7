"""The pod that runs a replica, field by field as TorchX makes it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...specs.errors import AppDefError
from ...specs.mounts import BindMount, DeviceMount, Mount, VolumeMount
from ...specs.named_resources_aws import EFA_DEVICE
from ...specs.resources import Resource
from ...specs.roles import Role, macros
from ...specs.status import MISSING
from ..shared.kept_app_def import LAUNCH_VARIABLES
from .objects import KubernetesObject, dig
from .overlay import NAMESPACE, POD

if TYPE_CHECKING:
    from kubernetes.client import V1Pod


# More than any machine has.
_MAX_AMOUNT = 1e21
_DSHM: KubernetesObject = {"name": "dshm", "emptyDir": {"medium": "Memory"}}
# Fields of a pod's spec that a role has; the others become its overlay.
_OF_ROLE = {"containers", "initContainers", "nodeSelector", "restartPolicy", "serviceAccountName", "volumes"}
# Fields of a container that a role has, or that a server fills in by itself.
_OF_CONTAINER = {
    "name", "image", "command", "args", "env", "envFrom", "resources", "ports", "volumeMounts", "imagePullPolicy",
    "terminationMessagePath", "terminationMessagePolicy",
}  # fmt: skip

RESERVED_MILLICPU = 100
RESERVED_MEMMB = 1024
GPU = "nvidia.com/gpu"
IMAGE_VARIABLE = "TORCHX_IMAGE"
FIELD_PATH = "[FIELD_PATH]"
"""Before the value of a variable: the rest names a field of the pod, such as ``status.podIP``, whose value it gets."""
# As an API server has it: a domain, a slash, a name (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/).
_NODE_LABEL = re.compile(
    r"(?=.{1,317}$)[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)


def cores(quantity: Any) -> float | None:
    """Return a quantity as a number; None if it is not one, or more than any machine has."""
    from kubernetes.utils.quantity import parse_quantity

    try:
        amount = float(parse_quantity(str(quantity).strip()))
    except (ValueError, ArithmeticError):
        return None
    return amount if abs(amount) < _MAX_AMOUNT else None


def megabytes(quantity: Any) -> int | None:
    """Return a quantity of memory in megabytes (10**6 bytes, as in TorchX), at least 1; None if it is not one."""
    value = cores(quantity)
    return None if value is None else max(1, round(value / 1e6))


def role_to_pod(
    name: str,
    role: Role,
    service_account: str | None,
    reserved_millicpu: int = RESERVED_MILLICPU,
    reserved_memmb: int = RESERVED_MEMMB,
    efa_device_count: int | None = None,
) -> V1Pod:
    """Return a pod that runs a role, as the model of the package `kubernetes`.

    Args:
        name: the container's name.
        role: the role, its macros replaced; its overlay is not laid over the pod.
        service_account: what the pod runs as.
        reserved_millicpu: thousandths of a CPU that are requested less than the role asks for; the limit is the role's.
        reserved_memmb: megabytes of memory that are requested less.
        efa_device_count: how many EFA devices it gets, in place of the role's own number.

    Raises:
        AppDefError: the role has a mount of an unknown kind.
    """
    from kubernetes.client import ApiClient

    pod = make_pod(name, role, service_account, reserved_millicpu, reserved_memmb, efa_device_count)
    # The public `deserialize` takes the text of an answer, and another form of it in each release.
    return getattr(ApiClient(), "_ApiClient__deserialize")(pod, "V1Pod")  # noqa: B009 - the name is mangled


def make_pod(
    name: str,
    role: Role,
    service_account: str | None,
    reserved_millicpu: int = RESERVED_MILLICPU,
    reserved_memmb: int = RESERVED_MEMMB,
    efa_device_count: int | None = None,
) -> KubernetesObject:
    """Return a pod that runs a role, as plain data; see `role_to_pod`."""
    mounts, volumes = _mounts(role)
    spec: KubernetesObject = {
        "containers": [
            {
                "command": [role.entrypoint, *role.args],
                "env": [_variable(key, str(value)) for key, value in role.env.items()],
                "image": role.image,
                "name": name,
                "ports": [{"name": key, "containerPort": port} for key, port in role.port_map.items()],
                "resources": _resources(role, reserved_millicpu, reserved_memmb, efa_device_count),
                "securityContext": _security(role.mounts),
                "volumeMounts": mounts,
            }
        ],
        "nodeSelector": node_labels(role),
        "restartPolicy": "Never",
        "volumes": volumes,
    }
    if service_account is not None:
        spec["serviceAccountName"] = service_account
    # A sidecar of Istio's would never end.
    return {"metadata": {"annotations": {"sidecar.istio.io/inject": "false"}, "labels": {}}, "spec": spec}


def node_labels(role: Role) -> dict[str, str]:
    """Return the labels that a role's nodes must have: its capabilities that are named as labels of nodes are."""
    wanted = role.resource.capabilities.items()
    return {key: _text(value) for key, value in wanted if value is not None and is_node_label(str(key))}


def is_node_label(name: str) -> bool:
    """Return whether a name is that of a node label with a domain, such as ``topology.kubernetes.io/zone``."""
    return _NODE_LABEL.fullmatch(name) is not None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _variable(name: str, value: str) -> KubernetesObject:
    if value.startswith(FIELD_PATH):
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": value.removeprefix(FIELD_PATH)}}}
    return {"name": name, "value": value}


def _resources(
    role: Role, reserved_millicpu: int, reserved_memmb: int, efa_device_count: int | None
) -> KubernetesObject:
    resource = role.resource
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    # Nodes keep some of what they have for themselves: a role that asks for a whole one would find none.
    if resource.cpu > 0:
        millicpu = int(resource.cpu * 1000)
        limits["cpu"], requests["cpu"] = f"{millicpu}m", f"{max(millicpu - reserved_millicpu, 0)}m"
    if resource.memMB > 0:
        memory = int(resource.memMB)
        limits["memory"], requests["memory"] = f"{memory}M", f"{max(memory - reserved_memmb, 0)}M"
    if resource.gpu > 0:
        limits[GPU] = requests[GPU] = str(resource.gpu)
    # Devices are requested as they are limited.
    limits.update({name: str(count) for name, count in resource.devices.items()})
    if efa_device_count is not None:
        limits.pop(EFA_DEVICE, None)
        if efa_device_count:
            limits[EFA_DEVICE] = str(efa_device_count)
    return {"limits": limits, "requests": requests}


def _security(mounts: Iterable[Mount]) -> KubernetesObject:
    # There is no other way to a device of the host.
    return {"privileged": True} if any(isinstance(mount, DeviceMount) for mount in mounts) else {}


def _mounts(role: Role) -> tuple[list[KubernetesObject], list[KubernetesObject]]:
    """Return a role's mounts, and the volumes that they are of."""
    # Data loaders share memory: a container's 64 MB would not do.
    mounts: list[KubernetesObject] = [{"mountPath": "/dev/shm", "name": "dshm"}]  # noqa: S108 - not this machine's
    volumes = [dict(_DSHM)]
    for number, mount in enumerate(role.mounts):
        name = f"mount-{number}"
        if isinstance(mount, (BindMount, DeviceMount)):
            volume: KubernetesObject = {"hostPath": {"path": mount.src_path}}
        elif isinstance(mount, VolumeMount):
            volume = {"persistentVolumeClaim": {"claimName": mount.src}}
        else:
            raise AppDefError(f"Role {role.name}: {mount!r} is not a mount: use BindMount, VolumeMount or DeviceMount")
        read_only = not set("wm") & set(mount.permissions) if isinstance(mount, DeviceMount) else mount.read_only
        mounts.append({"mountPath": mount.dst_path, "name": name, "readOnly": read_only})
        volumes.append({"name": name, **volume})
    return mounts, volumes


# From a pod to a role


def role_of_template(name: str, template: KubernetesObject, main: str, lost: list[str]) -> Role:
    """Return a role of one replica that runs a pod's main container; texts are literal.

    Unknown fields keep Role's defaults, with -1 for resources that are not limited.

    Args:
        name: the role's name.
        template: the pod's template.
        main: the name of its main container.
        lost: gets what a role cannot repeat.
    """
    spec = template.get("spec", {})
    containers = spec.get("containers", [])
    container = next((item for item in containers if item["name"] == main), {})
    if len(containers) + len(spec.get("initContainers", [])) > 1:
        lost.append(f"{name}: only its main container is launched again")
    # A mount of a device makes a container privileged.
    others = ((field, value) for field, value in container.items() if value and field not in _OF_CONTAINER)
    more = sorted(field for field, value in others if (field, value) != ("securityContext", {"privileged": True}))
    if more:
        lost.append(f"{name}: its container's {', '.join(more)} {'are' if len(more) > 1 else 'is'} not launched again")
    if spec.get("restartPolicy") == "OnFailure":
        lost.append(f"{name}: its container is not started again in the same pod (restartPolicy OnFailure)")
    # Without a command the image's own entrypoint gets the arguments.
    entrypoint, *args = map(_literal, [*(container.get("command") or [MISSING]), *container.get("args", [])])
    beyond = {key: value for key, value in spec.items() if key not in _OF_ROLE}
    return Role(
        name,
        container.get("image") or "",
        entrypoint=entrypoint,
        args=args,
        env=_environment(name, container, lost),
        resource=_resource(container, spec),
        port_map={
            port.get("name") or str(port["containerPort"]): port["containerPort"]
            for port in container.get("ports", [])
            if port.get("containerPort")
        },
        mounts=_mounts_of(name, container, spec, lost),
        metadata={NAMESPACE: {POD: {"spec": beyond}}} if beyond else {},
    )


def _literal(text: str) -> str:
    """Return a text of a role that becomes this text when macros are replaced."""
    return text.replace("$", "$$") if macros.Values("", "", "").substitute(text) != text else text


def _environment(role: str, container: KubernetesObject, lost: list[str]) -> dict[str, str]:
    env: dict[str, str] = {}
    for variable in container.get("env", []):
        name, source = variable.get("name", ""), variable.get("valueFrom", {})
        if name in LAUNCH_VARIABLES:
            continue
        if not source:
            env[name] = _literal(variable.get("value") or "")
        elif path := dig(source, "fieldRef", "fieldPath"):
            env[name] = f"{FIELD_PATH}{path}"
        else:
            lost.append(f"{role}: the variable {name} comes from a secret or a ConfigMap, which a role cannot say")
    if container.get("envFrom"):
        lost.append(f"{role}: variables come from secrets or ConfigMaps, which a role cannot say")
    return env


def _resource(container: KubernetesObject, spec: KubernetesObject) -> Resource:
    resources = container.get("resources", {})
    wanted = {**resources.get("requests", {}), **resources.get("limits", {})}
    cpu = cores(wanted.pop("cpu", None))
    memory = megabytes(wanted.pop("memory", None))
    gpu = cores(wanted.pop(GPU, None))
    devices = {name: int(count) for name, count in wanted.items() if "/" in name and str(count).isdecimal()}
    return Resource(
        cpu=-1 if cpu is None else _whole(cpu),
        gpu=int(gpu or 0),
        memMB=-1 if memory is None else memory,
        capabilities={key: value for key, value in spec.get("nodeSelector", {}).items() if is_node_label(key)},
        devices=devices,
    )


def _whole(cpu: float) -> Any:
    return int(cpu) if cpu == int(cpu) else cpu


def _mounts_of(role: str, container: KubernetesObject, spec: KubernetesObject, lost: list[str]) -> list[Mount]:
    volumes = {volume.get("name"): volume for volume in spec.get("volumes") or []}
    privileged = bool(dig(container, "securityContext", "privileged"))
    mounts: list[Mount] = []
    for mount in container.get("volumeMounts", []):
        name, target, read_only = mount.get("name", ""), mount.get("mountPath", ""), bool(mount.get("readOnly"))
        volume = volumes.get(name) or {}
        if path := dig(volume, "hostPath", "path"):
            is_device = privileged and path.startswith("/dev/")
            permissions = "r" if read_only else "rwm"
            mounts.append(DeviceMount(path, target, permissions) if is_device else BindMount(path, target, read_only))
        elif claim := dig(volume, "persistentVolumeClaim", "claimName"):
            mounts.append(VolumeMount(claim, target, read_only))
        elif name != _DSHM["name"]:
            lost.append(f"{role}: what is mounted at {target} is neither of the host nor a claim, a role cannot say it")
    return mounts
