"""The AppDef of a job: kept in an annotation of it, else reconstructed from its tasks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ....base.files import user_name
from ....specs.mounts import BindMount, DeviceMount, Mount, VolumeMount
from ....specs.resources import Resource
from ....specs.roles import AppDef, RetryPolicy, Role, macros
from ....specs.status import MISSING
from ...shared.kept_app_def import LAUNCH_VARIABLES, kept_text, read_kept
from .. import labels
from ..jobs import count_of, replica_of_task, tasks_of
from ..phases import main_container
from ..shapes import KubernetesObject
from .overlay import NAMESPACE, POD
from .pods import FIELD_PATH, GPU, cores, is_node_label, megabytes

DSHM: KubernetesObject = {"name": "dshm", "emptyDir": {"medium": "Memory"}}
"""The volume of shared memory of every pod."""

# Fields of a pod's spec that a role has; the others become its overlay.
_OF_ROLE = {"containers", "initContainers", "nodeSelector", "restartPolicy", "serviceAccountName", "volumes"}


def app_def_annotations(
    app: AppDef, session: str, submitted_at: float | None = None, built: Collection[str] = ()
) -> dict[str, str]:
    """Return the annotations of a job that keep its AppDef and who launched it, and when.

    Args:
        app: the AppDef, as it is launched.
        session: the session part of its handle.
        submitted_at: seconds since the epoch; None where that is not known yet.
        built: images that have the workspace of their role in them.
    """
    text, left_out = kept_text(app, labels.APP_DEF_LIMIT, built)
    kept = {labels.APP_DEF_LEFT_OUT: left_out} if left_out else {labels.APP_DEF: text}
    kept.update({labels.USER: user_name(), labels.SESSION: session})
    if submitted_at is not None:
        kept[labels.SUBMITTED_AT] = f"{submitted_at:.3f}"
    return kept


def read_app_def(job: KubernetesObject, notes: list[str]) -> AppDef | None:
    """Return the AppDef that an annotation of a job keeps, None where none does.

    Args:
        job: the job.
        notes: gets why there is none, where that is known.
    """
    annotations = job["metadata"].get("annotations") or {}
    return read_kept(annotations.get(labels.APP_DEF) or "", annotations.get(labels.APP_DEF_LEFT_OUT) or "", notes)


def roles_of(job: KubernetesObject, notes: list[str] | None = None) -> list[Role]:
    """Return the roles of a job whose AppDef is not kept, from the first task of each role.

    Commands and variables are repeated literally. Unknown fields keep Role's defaults, with -1 for resources that are
    not limited.

    Args:
        job: the job.
        notes: gets what a role cannot repeat.
    """
    by_role: dict[str, list[KubernetesObject]] = {}
    for task in tasks_of(job):
        by_role.setdefault(replica_of_task(task).role, []).append(task)
    lost: list[str] = []
    roles = [_role(name, tasks, lost) for name, tasks in by_role.items()]
    if notes is not None:
        notes += list(dict.fromkeys(lost))
    return roles


def _role(name: str, tasks: list[KubernetesObject], lost: list[str]) -> Role:
    first = tasks[0]
    spec = (first.get("template") or {}).get("spec") or {}
    containers = [_main_container(task) for task in tasks]
    container = containers[0]
    if any(item.get(field) != container.get(field) for item in containers for field in ("command", "args")):
        lost.append(f"{name}: the arguments of its replicas differ: those of the first are used for all")
    if len(spec.get("containers") or []) + len(spec.get("initContainers") or []) > 1:
        lost.append(f"{name}: only its main container is launched again")
    entrypoint, *args = map(_literal, _command(container))
    maximum, policy = _retries(first)
    beyond = {key: value for key, value in spec.items() if key not in _OF_ROLE}
    return Role(
        name,
        container.get("image") or "",
        entrypoint=entrypoint,
        args=args,
        env=_environment(name, container, lost),
        num_replicas=sum(count_of(task) for task in tasks),
        max_retries=maximum,
        retry_policy=policy,
        resource=_resource(container, spec),
        port_map={port.get("name") or str(port["containerPort"]): port["containerPort"] for port in _ports(container)},
        min_replicas=_min_replicas(tasks),
        mounts=_mounts(name, container, spec, lost),
        metadata={NAMESPACE: {POD: {"spec": beyond}}} if beyond else {},
    )


def _literal(text: str) -> str:
    """Return a text of a role that becomes this text when macros are replaced."""
    return text.replace("$", "$$") if macros.Values("", "", "").substitute(text) != text else text


def _main_container(task: KubernetesObject) -> KubernetesObject:
    template = task.get("template") or {}
    own = main_container(template, task.get("name", ""))
    containers = (template.get("spec") or {}).get("containers") or []
    return next((item for item in containers if item.get("name") == own), {})


def _command(container: KubernetesObject) -> list[str]:
    # TorchX writes all of it into the command; what is no TorchX's may have only arguments, for the image's own.
    return [*(container.get("command") or [MISSING]), *(container.get("args") or [])]


def _ports(container: KubernetesObject) -> list[KubernetesObject]:
    return [port for port in container.get("ports") or [] if port.get("containerPort")]


def _environment(role: str, container: KubernetesObject, lost: list[str]) -> dict[str, str]:
    env: dict[str, str] = {}
    for variable in container.get("env") or []:
        name, source = variable.get("name", ""), variable.get("valueFrom") or {}
        if name in LAUNCH_VARIABLES:
            continue
        if not source:
            env[name] = _literal(variable.get("value") or "")
        elif path := (source.get("fieldRef") or {}).get("fieldPath"):
            env[name] = f"{FIELD_PATH}{path}"
        else:
            lost.append(f"{role}: the variable {name} comes from a secret or a ConfigMap, which a role cannot say")
    if container.get("envFrom"):
        lost.append(f"{role}: variables come from secrets or ConfigMaps, which a role cannot say")
    return env


def _retries(task: KubernetesObject) -> tuple[int, RetryPolicy]:
    actions = {policy.get("action") for policy in task.get("policies") or []}
    if "RestartJob" in actions:
        return task.get("maxRetry") or 0, RetryPolicy.APPLICATION
    if actions & {"RestartTask", "RestartPod"}:
        return task.get("maxRetry") or 0, RetryPolicy.ROLE
    # Volcano's webhook writes maxRetry into tasks that have none: an empty list of policies says that it was meant.
    if "policies" in task:
        return task.get("maxRetry") or 0, RetryPolicy.REPLICA
    return 0, RetryPolicy.APPLICATION


def _min_replicas(tasks: list[KubernetesObject]) -> int | None:
    """Return the fewest replicas that a role runs with, None where it is not elastic."""
    known = [task.get("minAvailable") for task in tasks]
    if all(minimum is None for minimum in known):
        return None
    least = sum(count_of(task) if minimum is None else int(minimum) for task, minimum in zip(tasks, known, strict=True))
    # Volcano's webhook writes it for all tasks, as their replicas.
    return None if least >= sum(count_of(task) for task in tasks) else least


def _resource(container: KubernetesObject, spec: KubernetesObject) -> Resource:
    resources = container.get("resources") or {}
    wanted = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    cpu = cores(wanted.pop("cpu", None))
    memory = megabytes(wanted.pop("memory", None))
    gpu = cores(wanted.pop(GPU, None))
    devices = {name: int(count) for name, count in wanted.items() if "/" in name and str(count).isdecimal()}
    return Resource(
        cpu=-1 if cpu is None else _whole(cpu),
        gpu=int(gpu or 0),
        memMB=-1 if memory is None else memory,
        capabilities={key: value for key, value in (spec.get("nodeSelector") or {}).items() if is_node_label(key)},
        devices=devices,
    )


def _whole(cpu: float) -> Any:
    return int(cpu) if cpu == int(cpu) else cpu


def _mounts(role: str, container: KubernetesObject, spec: KubernetesObject, lost: list[str]) -> list[Mount]:
    volumes = {volume.get("name"): volume for volume in spec.get("volumes") or []}
    privileged = bool((container.get("securityContext") or {}).get("privileged"))
    mounts: list[Mount] = []
    for mount in container.get("volumeMounts") or []:
        name, target, read_only = mount.get("name", ""), mount.get("mountPath", ""), bool(mount.get("readOnly"))
        volume = volumes.get(name) or {}
        if path := (volume.get("hostPath") or {}).get("path"):
            is_device = privileged and path.startswith("/dev/")
            permissions = "r" if read_only else "rwm"
            mounts.append(DeviceMount(path, target, permissions) if is_device else BindMount(path, target, read_only))
        elif claim := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
            mounts.append(VolumeMount(claim, target, read_only))
        elif name != DSHM["name"]:
            lost.append(f"{role}: what is mounted at {target} is neither of the host nor a claim, a role cannot say it")
    return mounts
