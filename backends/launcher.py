"""Launching: the intent into the journal, an AppDef into the request that a scheduler is given, the app id after it.

On its way an app is checked, given what every job gets, and its workspaces are built.
"""

from __future__ import annotations

import copy
import json
import os
import re
import time
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..specs.batch_script import script_of
from ..specs.errors import AppDefError, LaunchCancelledError, SchedulerError, UnknownAppException
from ..specs.handles import make_app_handle, parse_app_handle, split_context
from ..specs.roles import AppDef, macros
from ..specs.status import AppState
from ..specs.workspace import Workspace
from .abilities import ChecksLaunches, ChecksNames
from .api import check_launchable
from .history.provenance import GitNotes
from .workspace import WorkspaceMixin

if TYPE_CHECKING:
    from ..specs.roles import AppDef, AppDryRunInfo
    from ..specs.workspace import Workspace
    from .api import DescribeAppResponse, Finding, NameFault, Scheduler
    from .history.journal import Journal
    from .history.launch_record import LaunchOrigin, LaunchRecord
    from .scheduler_pool import SchedulerPool
    from .shared.progress import Progress

# TorchX's own environment variables of a job.
ENV_JOB_ID = "TORCHX_JOB_ID"
ENV_SESSION_ID = "TORCHX_INTERNAL_SESSION_ID"
ENV_PARENT_RUN_ID = "TORCHX_PARENT_RUN_ID"
# Fields in which `macros.Values.apply` substitutes macros.
_SUBSTITUTED = ("entrypoint", "args", "env", "metadata")
_DOUBLE_DOLLAR = re.compile(r"\$\$(?!\{)")


class Launcher:
    """Launches apps on the schedulers of a pool, and records it.

    Args:
        schedulers: where.
        journal: where launches are recorded.
        session_name: the session part of new handles.
        most_replicas: an app of more replicas is refused.
    """

    def __init__(self, schedulers: SchedulerPool, journal: Journal, session_name: str, most_replicas: int) -> None:
        self._schedulers = schedulers
        self._journal = journal
        self._session_name = session_name
        self._session_id = str(uuid.uuid4())
        self._most_replicas = most_replicas
        self._git_notes = GitNotes(journal)

    def close(self) -> None:
        """Wait a moment for what is noted beside the last launches."""
        self._git_notes.close()

    def preflight(self, app: AppDef, scheduler: str, cfg: Mapping[str, Any]) -> list[Finding]:
        """Find what would go wrong with a launch that the scheduler itself would accept.

        Raises:
            AppDefError: the app cannot be run anywhere.
        """
        from .types import Finding

        check_launchable(app, self._most_replicas)
        chosen = self._schedulers.get(scheduler)
        findings = [*chosen.preflight(app, cfg)] if isinstance(chosen, ChecksLaunches) else []
        for role in app.roles:
            if role.max_retries > 0 and not chosen.capabilities.retries:
                hint = f"max_retries={role.max_retries} is ignored"
                findings.append(Finding("warning", f"{role.name}: {scheduler} makes no retries", hint))
        return findings

    def check_names(self, app: AppDef, scheduler: str, cfg: Mapping[str, Any]) -> list[NameFault]:
        """Return the names that the scheduler refuses or changes, see `ChecksNames`.

        Raises:
            AppDefError: the app cannot be run anywhere.
        """
        check_launchable(app, self._most_replicas)
        chosen = self._schedulers.get(scheduler)
        return chosen.check_names(app, cfg) if isinstance(chosen, ChecksNames) else []

    def dryrun(
        self, app: AppDef, scheduler: str, cfg: Mapping[str, Any], workspace: str | None = None
    ) -> AppDryRunInfo[Any]:
        """Return the request that `run` would send; ``app`` is not changed, and no workspace is built.

        It ends early when the current progress is cancelled. Its text says what would be built; the request itself
        then has the image that is built on.

        Raises:
            AppDefError: the app cannot be run anywhere.
            InvalidRunConfigException: a run option is unknown, missing or of the wrong type.
            LaunchCancelledError: the current progress was cancelled.
            SchedulerError: the scheduler does not take this app.
        """
        check_launchable(app, self._most_replicas)
        name = self._schedulers.resolve_context(scheduler, cfg)
        chosen = self._schedulers.get(name)
        registered, _ = split_context(name)
        is_script = script_of(app.roles) is not None
        if is_script and not chosen.capabilities.batch_scripts:
            raise AppDefError(f"{name} runs no batch scripts: launch it on slurm")
        resolved: Any = chosen.run_opts().resolve(cfg)
        prepared = self._prepare(app, chosen, registered, workspace)
        chosen._pre_build_validate(prepared, registered, resolved)
        info = _make_request(prepared, chosen, registered, resolved)
        if not is_script:
            info.notes += _dollar_notes(prepared)
        if isinstance(chosen, WorkspaceMixin):
            info.notes += chosen.planned_builds(prepared.roles)
        return info

    def _prepare(self, app: AppDef, scheduler: Scheduler[Any], name: str, workspace: str | None) -> AppDef:
        """Copy an app, and give it what every job gets; a workspace becomes that of the first role."""
        if workspace and not scheduler.takes_workspace:
            raise SchedulerError(f"{name} takes no workspace: it runs in the current folder; leave it empty")
        prepared = copy.deepcopy(app)
        for role in prepared.roles:
            role.env[ENV_JOB_ID] = make_app_handle(name, self._session_name, macros.app_id)
            role.env[ENV_SESSION_ID] = self._session_id
        if workspace:
            prepared.roles[0].workspace = Workspace.from_str(workspace)
        return prepared

    def run(
        self,
        app: AppDef,
        scheduler: str,
        cfg: Mapping[str, Any],
        workspace: str | None = None,
        *,
        origin: LaunchOrigin | None = None,
        progress: Progress | None = None,
    ) -> str:
        """Launch ``app`` and return its handle.

        The intent is in the journal before the scheduler is asked or a workspace built, and the app id after it: a
        crash in between loses neither the job nor what is needed to launch it again.

        Args:
            app: what to run.
            scheduler: the scheduler's name.
            cfg: run options; those that are left out take their defaults.
            workspace: what to ship with the first role, for schedulers that can.
            origin: what the app was made from, for the history.
            progress: is told how far it is, and can end it before anything runs.

        Raises:
            LaunchCancelledError: ``progress`` was cancelled.
            TorchXTuiError: see `dryrun`; or the launch itself failed.
        """
        from .shared.progress import shown_progress

        journal = self._journal
        scheduler = self._schedulers.resolve_context(scheduler, cfg)
        with shown_progress(progress):
            info = self.dryrun(app, scheduler, cfg, workspace)
        try:
            record = journal.record_intent(
                app,
                scheduler,
                self._session_name,
                cfg,
                origin=origin,
                workspace=workspace or "",
                expected_app_id=_expected_app_id(info),
            )
        except OSError as error:
            raise SchedulerError(
                f"nothing was launched: the journal in {journal.folder} cannot be written ({error.strerror})"
            ) from error
        chosen = self._schedulers.get(scheduler)
        self._git_notes.begin(record)
        try:
            with shown_progress(progress):
                if chosen.takes_workspace and info.app and any(role.workspace for role in info.app.roles):
                    info = _build_workspaces(info, chosen, split_context(scheduler)[0])
                    journal.note(record, expected_app_id=_expected_app_id(info))
                app_id = chosen.schedule(info)
        except Exception as error:
            ended = isinstance(error, LaunchCancelledError)
            state = AppState.CANCELLED if ended else AppState.FAILED
            journal.note(record, error=str(error), state=state.name, message=str(error), state_at=time.time())
            raise
        journal.note(record, app_id=app_id, state=AppState.SUBMITTED.name, state_at=time.time())
        return make_app_handle(scheduler, self._session_name, app_id)


def _dollar_notes(app: AppDef) -> list[str]:
    """Warn about fields in which macro substitution turns ``$$``, a shell's process id, into ``$``.

    Components write ``$${NAME}`` on purpose, where NAME is the value of a macro.
    """
    notes = []
    for role in app.roles:
        fields = [name for name in _SUBSTITUTED if _DOUBLE_DOLLAR.search(str(getattr(role, name)))]
        if fields:
            notes.append(f"role {role.name}: $$ in its {' and '.join(fields)} becomes $: write $$$$ for $$")
    return notes


def _expected_app_id(info: AppDryRunInfo[Any]) -> str:
    return str(getattr(info.request, "app_id", ""))


def with_parent(app: AppDef, parent_run_id: str | None) -> AppDef:
    """Return an app whose jobs belong to a run: the one of this process's own environment, else the one named.

    Args:
        app: what to run; it is not changed.
        parent_run_id: the run's id, for trackers of experiments.
    """
    parent = os.environ.get(ENV_PARENT_RUN_ID) or parent_run_id
    if not parent:
        return app
    child = copy.deepcopy(app)
    for role in child.roles:
        role.env[ENV_PARENT_RUN_ID] = parent
    return child


def earlier_launch(
    handle: str, record: LaunchRecord | None, describe: Callable[[], DescribeAppResponse | None]
) -> tuple[AppDef, str, Mapping[str, Any], str | None, LaunchOrigin | None]:
    """Return app, scheduler, cfg, workspace and origin of a job's launch: by the journal, else by its backend.

    Raises:
        UnknownAppException: neither knows the job.
        SchedulerError: neither knows what it ran.
    """
    if record is not None:
        origin = record.origin(relaunch_of=record.id, group="", swept={})
        return record.app_def(), record.scheduler, record.cfg, record.workspace or None, origin
    described = describe()
    if described is None:
        raise UnknownAppException(handle)
    if not described.roles:
        raise SchedulerError(f"{handle} cannot be launched again: its command or its batch script is unknown")
    app = AppDef(name=described.name or described.app_id, roles=described.roles)
    return app, parse_app_handle(handle).scheduler_backend, described.cfg, None, None


def workspace_text(workspace: Workspace | str | None) -> str | None:
    """Return a workspace as `Workspace.from_str` reads it, None where there is none."""
    if not workspace:
        return None
    if isinstance(workspace, str):
        return workspace
    single = workspace.is_unmapped_single_project()
    return next(iter(workspace.projects)) if single else json.dumps(workspace.projects)


def _make_request(app: AppDef, scheduler: Scheduler[Any], name: str, resolved: Any) -> AppDryRunInfo[Any]:
    scheduler._validate(app, name, resolved)
    info = scheduler.submit_dryrun(app, resolved)
    if info.app is None:  # an overridden submit_dryrun may leave it out
        info.app, info.cfg = app, resolved
    info._scheduler = name
    return info


def _build_workspaces(info: AppDryRunInfo[Any], scheduler: Any, name: str) -> AppDryRunInfo[Any]:
    """Build the workspaces of a dry run, and make its request anew with their images."""
    app: Any = info.app
    scheduler.build_workspaces(app.roles, info.cfg)
    # What is in the image already is not laid over it once more when the job is launched again from its AppDef.
    for role in app.roles:
        role.workspace = None
    return _make_request(app, scheduler, name, info.cfg)
