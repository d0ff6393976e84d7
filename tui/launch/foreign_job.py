"""A job that was not launched here, to be launched again from what its backend tells of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...specs.errors import SchedulerError, UnknownAppException
from ...specs.handles import parse_app_handle
from ...specs.roles import AppDef, Role
from ...specs.status import MISSING

if TYPE_CHECKING:
    from ...backends.runner import Runner


@dataclass(frozen=True)
class ForeignJob:
    """What a backend tells of a job.

    Attributes:
        app: the AppDef, as far as it is known.
        scheduler: where it ran.
        cfg: its run options, as far as they are known.
        unknown: fields of roles that are not known, by role.
        not_known: see `DescribeAppResponse.not_known`.
    """

    app: AppDef
    scheduler: str
    cfg: Mapping[str, Any] = field(default_factory=dict)
    unknown: Mapping[str, Sequence[str]] = field(default_factory=dict)
    not_known: Mapping[str, str] = field(default_factory=dict)


def foreign_job(runner: Runner, handle: str) -> ForeignJob:
    """Return what the backend tells of a job.

    Raises:
        UnknownAppException: it does not know the job.
        SchedulerError: it does not know what the job ran.
    """
    described = runner.job(handle).describe()
    if described is None:
        raise UnknownAppException(handle)
    if not described.roles:
        raise SchedulerError(f"{handle} cannot be launched again: its command or its batch script is unknown")
    app = AppDef(described.name or described.app_id, described.roles)
    unknown = {role.name: _unknown(role) for role in app.roles}
    return ForeignJob(app, parse_app_handle(handle).scheduler_backend, described.cfg, unknown, described.not_known)


def _unknown(role: Role) -> list[str]:
    has_program = bool(role.entrypoint) and role.entrypoint != MISSING
    return [*([] if role.image else ["image"]), *([] if has_program or role.args else ["entrypoint"])]
