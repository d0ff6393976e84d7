"""Ends jobs, and removes them: by what tells a job from one of the same name that was made since."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from ...specs import SchedulerError, is_terminal
from .api_server import ApiError, ApiServer
from .jobs import Object, find_job, jobs_path
from .listing import uid_of
from .phases import app_state

# How often a status is written that was changed by someone else meanwhile.
_TRIES = 5


def abort(server: ApiServer, app_id: str, uid: str) -> None:
    """Ask Volcano to end a job and keep it, as TorchX does: by writing its phase. A final or unknown one is left alone.

    Args:
        server: the server.
        app_id: the job.
        uid: which job of that name; any where empty.

    Raises:
        SchedulerError: there is another job of that name now, or the server refused.
    """
    for left in range(_TRIES - 1, -1, -1):
        job = _find(server, app_id, uid)
        if job is None or is_terminal(app_state(job)):
            return
        status: dict[str, Any] = job.setdefault("status", {})
        # As Volcano notes a transition itself. It keeps it: else the time would be that of the phase before.
        ended = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        status["state"] = {**(status.get("state") or {}), "phase": "Aborted", "lastTransitionTime": ended}
        status["conditions"] = [
            *(status.get("conditions") or []),
            {"status": "Aborted", "lastTransitionTime": ended},
        ]
        try:
            server.request("PUT", f"{_path(job)}/status", body=job)
            return
        except ApiError as error:
            # 409: Volcano, or someone else, wrote in between.
            if error.status != 409 or not left:
                raise


def remove(server: ApiServer, app_id: str, uid: str) -> None:
    """Remove a job and its pods; an unknown one is nothing to remove.

    Args:
        server: the server.
        app_id: the job.
        uid: which job of that name; any where empty.

    Raises:
        SchedulerError: there is another job of that name now, or the server refused.
    """
    job = _find(server, app_id, uid)
    if job is None:
        return
    body = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": uid_of(job)},
    }
    try:
        server.request("DELETE", _path(job), body=body)
    except ApiError as error:
        if error.status == 409:
            raise _replaced(app_id) from error
        if error.status != 404:
            raise


def _find(server: ApiServer, app_id: str, uid: str) -> Object | None:
    job = find_job(server, app_id)
    if job is not None and uid and uid_of(job) != uid:
        raise _replaced(app_id)
    return job


def _replaced(app_id: str) -> SchedulerError:
    return SchedulerError(
        f"{app_id} is another job by now: the one that was shown is gone; look at it again before you end it"
    )


def _path(job: Object) -> str:
    return jobs_path(job["metadata"]["namespace"], job["metadata"]["name"])
