"""Names of an app's pods, which are checked before anything is created."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...specs.errors import AppDefError
from ...specs.handles import normalize_str
from ...specs.roles import AppDef, Role
from ..api import check_launchable
from ..kube.names import check_namespace
from ..types import NameFault

PodName = Callable[[str, AppDef, Role, int], str]
"""Returns the name of a pod by the job's name, the app, the role and the replica."""
# A pod's name becomes its host name, which is one label of a DNS name.
_LONGEST = 63
# Longest random part of a job's name: a length that fits once always fits.
_RANDOM_PART = 14


def check_app(app: AppDef, namespace: str, pod_name: PodName) -> None:
    """Refuse an app that cannot be a job.

    Raises:
        AppDefError: a name has no characters that a server takes, or too many, or would stand for two things; or there
            is nothing to run.
    """
    check_namespace(namespace)
    check_launchable(app)
    for fault in name_faults(app, pod_name):
        if fault.refused:
            raise AppDefError(f"{fault.what} is {fault.name!r}: {fault.words}")


def name_faults(app: AppDef, pod_name: PodName) -> Iterator[NameFault]:
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
            yield from _length_faults(app, role, pod_name)
        seen.setdefault(short, role.name)


def _form_faults(role: str, name: str) -> Iterator[NameFault]:
    short = normalize_str(name)
    if not short.strip("-"):
        yield NameFault(role, name, "pods are named after it", "it needs letters or digits of ASCII")
    elif short != name:
        reason = "pods have only its small letters, digits and -"
        yield NameFault(role, name, reason, f"they are named {short}", refused=False)


def _length_faults(app: AppDef, role: Role, pod_name: PodName) -> Iterator[NameFault]:
    job, short = f"{normalize_str(app.name)}-", normalize_str(role.name)
    too_long = len(pod_name(f"{job}{'x' * _RANDOM_PART}", app, role, max(0, role.num_replicas - 1))) - _LONGEST
    if too_long <= 0:
        return
    # The longer one is more likely the one that can be shortened.
    shown = pod_name(f"{job}ID", app, role, 0)
    has_role = f"-{short}-" in shown.removeprefix(f"{job}ID")
    of_app = len(job) - 1 >= len(short) or not has_role
    name, other = (app.name, f"its role {role.name}") if of_app else (role.name, f"the app {app.name}")
    together = f" together with that of {other}" if has_role else ""
    reason = (
        f"{too_long} character{'s' if too_long > 1 else ''} too long{together}: a pod's name, {shown}, "
        f"can have {_LONGEST}"
    )
    most = len(normalize_str(name)) - too_long
    allowed = f"it can have {most} at most" if most > 0 else "shorten both of them"
    yield NameFault("" if of_app else role.name, name, reason, allowed)
