"""A local app in the words of the scheduler contract."""

from __future__ import annotations

from typing import Any

from ...specs import NONE, AppDefError, AppState, ReplicaStatus, RoleStatus
from ..endings import ended_words, signal_name
from ..responses import DescribeAppResponse, ListAppResponse, StateChange
from . import supervisor
from .causes import first_failure, not_started_words, structured_error, why
from .record import Run


def describe_run(run: Run) -> DescribeAppResponse:
    """Return everything about an app."""
    document = run.document
    failed = first_failure(run)
    response = DescribeAppResponse(
        app_id=run.app_id,
        state=run.state,
        num_restarts=0,
        msg=why(run) or NONE,
        structured_error_msg=structured_error(run, failed) if failed else NONE,
        ui_url=run.log_folder.as_uri() if run.log_folder else None,
        name=document.get("name", run.app_id),
        submitted_at=document.get("submitted_at"),
        started_at=document.get("started_at"),
        finished_at=document.get("finished_at"),
        timeline=[StateChange(AppState[state], at) for state, at in document.get("timeline", [])],
        user=document.get("user", ""),
        host=document.get("host", ""),
        notes=list(run.notes),
        log_dir=str(run.log_folder or ""),
        cfg=dict(document["cfg"]) if run.by_torchx else {},
    )
    if document:
        try:
            response.roles = run.app.roles
            response.image = run.app.roles[0].image if run.app.roles else ""
            response.metadata = dict(run.app.metadata)
        except AppDefError as error:
            response.notes.append(str(error))
        response.roles_statuses = _roles_statuses(run)
    return response


def list_run(run: Run) -> ListAppResponse:
    """Return an app as one row of a list."""
    document = run.document
    states = [replica_state(run, entry) for entry in run.replicas]
    roles = document.get("app", {}).get("roles") or [{}]
    return ListAppResponse(
        app_id=run.app_id,
        state=run.state,
        app_handle=run.job_id or "<NOT_SET>",
        name=document.get("name", run.app_id),
        submitted_at=document.get("submitted_at"),
        started_at=document.get("started_at"),
        finished_at=document.get("finished_at"),
        replicas_running=states.count(AppState.RUNNING),
        replicas_wanted=len(states),
        replicas_succeeded=states.count(AppState.SUCCEEDED),
        user=document.get("user", ""),
        image=str(roles[0].get("image", "")),
        msg=why(run),
        host=document.get("host", ""),
        notes=list(run.notes),
    )


def replica_state(run: Run, entry: dict[str, Any]) -> AppState:
    """Return the state of one replica."""
    if entry.get("not_started"):
        return AppState.FAILED
    if entry["exit_code"] is not None:
        if entry["exit_code"] == 0:
            return AppState.SUCCEEDED
        # What a cancel ended did not fail by itself.
        return AppState.CANCELLED if _ended_by_cancel(run, entry) else AppState.FAILED
    if entry.get("gone") and run.state is AppState.RUNNING:
        return AppState.UNKNOWN  # a replica of TorchX's, whose exit code TorchX alone knows
    if run.over:
        return AppState.CANCELLED if run.state in (AppState.CANCELLED, AppState.FAILED) else AppState.UNKNOWN
    if entry["pid"] and not run.supervised and not supervisor.is_running(entry["pid"], entry["pid_started"]):
        return AppState.UNKNOWN
    return AppState.RUNNING if entry["pid"] else run.state


def _ended_by_cancel(run: Run, entry: dict[str, Any]) -> bool:
    asked = run.document.get("cancel") or {}
    return bool(asked) and (entry.get("finished_at") or 0.0) >= float(asked.get("at") or 0.0)


def _roles_statuses(run: Run) -> list[RoleStatus]:
    roles: dict[str, list[ReplicaStatus]] = {}
    failed = first_failure(run)
    host = run.document.get("host", "")
    for entry in run.replicas:
        status = ReplicaStatus(
            id=entry["id"],
            state=replica_state(run, entry),
            role=entry["role"],
            hostname=host,
            structured_error_msg=structured_error(run, entry) if entry["exit_code"] and entry is failed else NONE,
            exit_code=entry["exit_code"],
            signal=signal_name(entry["exit_code"]),
            reason=not_started_words(entry) if entry.get("not_started") else ended_words(entry["exit_code"] or None),
            pid=entry["pid"],
            started_at=entry.get("started_at"),
            finished_at=entry.get("finished_at"),
        )
        roles.setdefault(entry["role"], []).append(status)
    return [RoleStatus(role, replicas) for role, replicas in roles.items()]
