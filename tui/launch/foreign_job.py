"""A job that was not launched here, as its backend describes it, to be launched again."""

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
    """A backend's description of a job.

    Attributes:
        app: the AppDef, with gaps.
        scheduler: where it ran.
        cfg: the known run options.
        unknown: unknown fields of roles, by role.
        not_known: see `DescribeAppResponse.not_known`.
        notes: what is not launched again, a sentence each.
    """

    app: AppDef
    scheduler: str
    cfg: Mapping[str, Any] = field(default_factory=dict)
    unknown: Mapping[str, Sequence[str]] = field(default_factory=dict)
    not_known: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()


def foreign_job(runner: Runner, handle: str) -> ForeignJob:
    """Describe a job for a launch.

    Raises:
        UnknownAppException: the backend does not know the job.
        SchedulerError: its command is unknown.
    """
    described = runner.job(handle).describe()
    if described is None:
        raise UnknownAppException(handle)
    if not described.roles:
        raise SchedulerError(f"{handle} cannot be launched again: its command or its batch script is unknown")
    app = AppDef(described.name or described.app_id, described.roles)
    unknown = {role.name: _unknown(role) for role in app.roles}
    scheduler = parse_app_handle(handle).scheduler_backend
    return ForeignJob(app, scheduler, described.cfg, unknown, described.not_known, described.notes)


def _unknown(role: Role) -> list[str]:
    has_program = bool(role.entrypoint) and role.entrypoint != MISSING
    return [*([] if role.image else ["image"]), *([] if has_program or role.args else ["entrypoint"])]
