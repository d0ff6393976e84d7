"""Names: as TorchX makes them, and refusing, before anything is created, what the server would refuse or mix up."""

from __future__ import annotations

from collections.abc import Iterator

from ....specs.errors import AppDefError
from ....specs.handles import normalize_str
from ....specs.roles import AppDef, Role
from ...api import check_launchable
from ...kube.names import check_namespace
from ...types import NameFault

# A pod's name becomes its host name, which is one label of a DNS name.
_LONGEST = 63
# Longest random part of a job's name: a length that fits once always fits.
_RANDOM_PART = 14


def cleanup_str(data: str) -> str:
    """Return a text in lower case, without everything that is not in ``[a-z0-9]``."""
    return normalize_str(data).replace("-", "")


def task_name(role: str, replica_id: int) -> str:
    """Return the name of a replica's task, which its container has as well."""
    return normalize_str(f"{role}-{replica_id}")


def hosts_variable(role: str, replica_id: int) -> str:
    """Return the variable in which Volcano tells all pods the host name of a replica."""
    return f"VC_{task_name(role, replica_id)}_HOSTS".upper().replace("-", "_")


def check_app(app: AppDef, namespace: str) -> None:
    """Refuse an app that cannot be a job.

    Raises:
        AppDefError: a name has no characters that a server takes, or too many, or would stand for two things; or there
            is nothing to run.
    """
    check_namespace(namespace)
    check_launchable(app)
    for fault in name_faults(app):
        if fault.refused:
            raise AppDefError(f"{fault.what} is {fault.name!r}: {fault.words}")


def name_faults(app: AppDef) -> Iterator[NameFault]:
    """Yield the names of an app and its roles that pods cannot have, and those that they have in another form."""
    yield from _form_faults("", app.name)
    seen: dict[str, str] = {}
    for role in app.roles:
        short = normalize_str(role.name)
        if short and short in seen:
            pair = f"the roles {seen[short]} and {role.name} would have pods of one name"
            yield NameFault(role.name, role.name, f"{pair}, which has only {short} of it", "rename one of them")
        else:
            yield from _form_faults(role.name, role.name)
            yield from _length_faults(app, role)
        seen.setdefault(short, role.name)


def _form_faults(role: str, name: str) -> Iterator[NameFault]:
    short = normalize_str(name)
    if not short.strip("-"):
        yield NameFault(role, name, "pods are named after it", "it needs letters or digits of ASCII")
    elif short != name:
        reason = "pods have only its small letters, digits and -"
        yield NameFault(role, name, reason, f"they are named {short}", refused=False)


def _length_faults(app: AppDef, role: Role) -> Iterator[NameFault]:
    job = f"{normalize_str(app.name)}-"
    task = task_name(role.name, max(0, role.num_replicas - 1))
    too_long = len(f"{job}{'x' * _RANDOM_PART}-{task}-0") - _LONGEST
    if too_long <= 0:
        return
    # The longer one is more likely the one that can be shortened.
    of_app = len(job) - 1 >= len(normalize_str(role.name))
    name, other = (app.name, f"its role {role.name}") if of_app else (role.name, f"the app {app.name}")
    reason = (
        f"{too_long} character{'s' if too_long > 1 else ''} too long together with that of {other}: a pod's name, "
        f"{job}ID-{task_name(role.name, 0)}-0, can have {_LONGEST}"
    )
    most = len(normalize_str(name)) - too_long
    allowed = f"it can have {most} at most" if most > 0 else "shorten both of them"
    yield NameFault("" if of_app else role.name, name, reason, allowed)
