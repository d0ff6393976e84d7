"""From an AppDef to the request that a scheduler is given: checked, with what every job gets, its workspaces built."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import specs

if TYPE_CHECKING:
    from ..specs import AppDef, AppDryRunInfo
    from .api import Scheduler

# TorchX's own environment variables of a job.
ENV_JOB_ID = "TORCHX_JOB_ID"
ENV_SESSION_ID = "TORCHX_INTERNAL_SESSION_ID"


def prepared_app(
    app: AppDef, scheduler: Scheduler[Any], name: str, handle: str, session_id: str, workspace: str | None
) -> AppDef:
    """Return a copy of an app with what every job gets.

    Args:
        app: what to run; it is not changed.
        scheduler: where.
        name: the scheduler's name.
        handle: the job's handle, with the macro of the app id in it.
        session_id: tells the launches of one program from those of others.
        workspace: what the first role takes along, in place of a workspace of its own.

    Raises:
        AppDefError: the app cannot be run anywhere.
        SchedulerError: the scheduler takes no workspace.
    """
    _check(app)
    if workspace and not scheduler.capabilities.workspace:
        raise specs.SchedulerError(f"{name} takes no workspace: it runs in the current folder; leave it empty")
    prepared = copy.deepcopy(app)
    for role in prepared.roles:
        role.env[ENV_JOB_ID] = handle
        role.env[ENV_SESSION_ID] = session_id
    if workspace:
        prepared.roles[0].workspace = specs.Workspace.from_str(workspace)
    return prepared


def request_of(
    app: AppDef, scheduler: Scheduler[Any], name: str, cfg: Mapping[str, Any], *, build: bool
) -> AppDryRunInfo[Any]:
    """Return a scheduler's request for a prepared app; the order of the steps is TorchX's.

    Args:
        app: what `prepared_app` gave; its images change where workspaces are built.
        scheduler: where.
        name: the scheduler's name.
        cfg: run options; those that are left out take their defaults.
        build: build the workspaces of roles. Else nothing is built, and the request's notes say what would be.

    Raises:
        AppDefError: the scheduler cannot run such an app.
        InvalidRunConfigException: a run option is unknown, missing or of the wrong type.
        LaunchCancelledError: the launch was cancelled while a workspace was built.
        SchedulerError: a workspace could not be built.
    """
    from .workspace import WorkspaceMixin

    resolved: Any = scheduler.run_opts().resolve(cfg)
    scheduler._pre_build_validate(app, name, resolved)
    notes: list[str] = []
    if isinstance(scheduler, WorkspaceMixin):
        if build:
            scheduler.build_workspaces(app.roles, resolved)
            # What is in the image already is not laid over it once more when the job is launched again from its AppDef.
            for role in app.roles:
                role.workspace = None
        else:
            notes = scheduler.planned_builds(app.roles)
    scheduler._validate(app, name, resolved)
    info = scheduler.submit_dryrun(app, cfg)
    info.notes = notes
    info._scheduler = name
    return info


def _check(app: AppDef) -> None:
    """Refuse an app that no scheduler could run."""
    if not app.roles:
        raise specs.AppDefError(f"{app.name or 'the app'} has no roles: a component must return at least one")
    for role in app.roles:
        if not role.entrypoint or role.entrypoint == specs.MISSING:
            raise specs.AppDefError(f"role {role.name} has no entrypoint: nothing to run")
        if role.num_replicas < 1:
            raise specs.AppDefError(f"role {role.name} asks for {role.num_replicas} replicas: at least 1 is needed")
