"""The commands list, status, describe and wait."""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from typing import TYPE_CHECKING, Any

from ..base.durations import duration
from ..base.errors import TorchXTuiError, join_names
from ..base.validation import JsonObject
from ..settings.make_runner import make_runner
from ..specs.errors import SchedulerError, UnknownAppException
from ..specs.status import NONE, AppState
from .commands import NOT_IN_TIME
from .jobs import describe_job, exit_code, job_json, wait_for_job, with_job
from .output import put, put_json, put_table, say, terminal_width

if TYPE_CHECKING:
    from ..backends.job import Job
    from ..backends.runner import Runner
    from ..backends.types import DescribeAppResponse, ListAppResponse
    from ..settings.config import Settings
    from ..specs.status import AppStatus, ReplicaStatus

# Terminal columns from which `list` shows more, and the time limit for reading logs for it (s).
_WIDE, _DETAILS_S = 140, 1.0
# Exit code of `wait` for a job whose end is unknown.
_END_UNKNOWN = 125


def list_jobs(arguments: Any, settings: Settings) -> int:
    from ..settings.launch_defaults import LaunchDefaults, resolve

    defaults = LaunchDefaults.load(settings)
    listed = defaults.listed_scheduler()
    chosen = arguments.scheduler or (listed and listed.value)
    if arguments.scheduler_args and not chosen:
        raise TorchXTuiError("-cfg is for one scheduler: name it with -s")
    apps: list[ListAppResponse] = []
    problems = list(resolve(defaults).problems)
    width = terminal_width() if sys.stdout.isatty() else 0
    rows = [["APP HANDLE", "APP NAME", "APP STATUS"]]
    with make_runner(settings) as runner:
        for name in [chosen] if chosen else runner.watched_schedulers():
            try:
                known = runner.scheduler(name).run_opts()
                resolved = resolve(defaults, name, known)
                problems += resolved.problems
                options = {key: option.value for key, option in resolved.options.items()}
                options |= known.cfg_from_str(arguments.scheduler_args or "")
                apps += runner.list(name, options or None)
                if missing := runner.scheduler(name).missing_jobs():
                    say(f"{name}: {missing}")
            except SchedulerError as error:
                if chosen:
                    raise
                say(f"{name} is left out: {error}")
        # On a terminal a long name must not hide the state.
        rows += [[app.app_handle, app.name[: max(20, width // 3) if width else None], app.state.name] for app in apps]
        if not arguments.json and (arguments.wide or width >= _WIDE):
            rows[0] += ["TIME", "NODES", "PROGRESS OR REASON"]
            deadline = time.monotonic() + (math.inf if arguments.wide else _DETAILS_S)
            for row, app in zip(rows[1:], apps, strict=True):
                row += [_run_time(app), app.host, _detail(runner, app, settings, deadline)]
    for problem in dict.fromkeys(problems):
        say(problem)
    if arguments.json:
        put_json([_app_json(app) for app in apps])
    else:
        put_table(rows, width)
    return 0


def _run_time(item: ListAppResponse | ReplicaStatus) -> str:
    """Return how long a job or a replica ran; empty if it has ended at an unknown time."""
    end = item.finished_at or (time.time() if item.state is AppState.RUNNING else None)
    return "" if item.started_at is None or end is None else duration(end - item.started_at)


def _detail(runner: Runner, app: ListAppResponse, settings: Settings, deadline: float) -> str:
    """Return the progress of a running job, or the reason for its state.

    Logs are read if they are local files, and until the deadline (`time.monotonic`).
    """
    reason = "" if app.msg == NONE else app.msg
    job = runner.job(app.app_handle)
    if app.state not in (AppState.RUNNING, AppState.FAILED) or time.monotonic() > deadline or not _has_log_files(job):
        return reason
    from .progress import progress_at_end

    try:
        found = describe_job(job)
        if app.state is AppState.FAILED:
            return _reason(runner, job, found, settings)
        return ", ".join(progress_at_end(job, found, settings).words) or reason
    except (SchedulerError, UnknownAppException):  # it has just ended, or its backend cannot be reached
        return reason


def _has_log_files(job: Job) -> bool:
    from ..backends.abilities import KeepsLogFiles

    return isinstance(job.scheduler, KeepsLogFiles)


def _reason(runner: Runner, job: Job, found: DescribeAppResponse, settings: Settings) -> str:
    """Return the reason for a job's state; for a failed job, read its logs if they are local files."""
    if found.state is not AppState.FAILED or not _has_log_files(job):
        return found.msg
    from ..diagnosis.failure.explain import explain_job

    patterns = settings.logs.error_patterns
    sentence = explain_job(runner, job.handle, found, job.replica_logs(found), extra_patterns=patterns).sentence
    return "; ".join(filter(None, (sentence, *found.reasons[1:]))) or found.msg


def _app_json(app: ListAppResponse) -> JsonObject:
    rest = dataclasses.asdict(app)
    handle = rest.pop("app_handle")
    return {"handle": handle, **rest, **job_json(handle, app.state)}


def status(arguments: Any, settings: Settings) -> int:
    progress: JsonObject = {}
    stall = ""
    with with_job(settings, arguments.handle) as (runner, job):
        found = describe_job(job)
        if found.state is AppState.RUNNING:
            from .progress import activity_json, job_activity, stall_at_end

            if arguments.json:
                progress = activity_json(job_activity(runner, job, found, settings))
            elif _has_log_files(job):
                stall = stall_at_end(runner, job, found, settings)
        found.msg = _reason(runner, job, found, settings)
    roles = [role for role in arguments.roles.split(",") if role]
    known = [role.role for role in found.roles_statuses] or [role.name for role in found.roles]
    for role in roles:
        if role not in known:
            say(f"{job.handle} has no role {role}; its roles are {join_names(known, 'not known')}")
    if arguments.json:
        put_json({**_status_json(job, found.status(), roles), **({"progress": progress} if progress else {})})
        return 0
    put(found.status().format(roles))
    replicas = [one for role in found.roles_statuses if role.role in (roles or known) for one in role.replicas]
    rows = [[f"{one.role}/{one.id}", one.state.name, *_replica_details(one)] for one in replicas]
    if any(cell for row in rows for cell in row[2:]):
        put_table([["REPLICA", "STATE", "EXIT", "NODE", "STARTED", "TIME"], *rows])
    if stall:
        put(f"Stalled: {stall}")
    return 0


def _replica_details(replica: ReplicaStatus) -> list[str]:
    """Return exit code or signal, node, start and run time; unknown ones are empty."""
    code, start = replica.exit_code, replica.started_at
    ended = replica.signal or ("" if code is None else str(code))
    started = "" if start is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(start))
    return [ended, replica.node, started, _run_time(replica)]


def _status_json(job: Job, status: AppStatus, roles: list[str] | None = None) -> JsonObject:
    """Return TorchX's keys, and those of every job."""
    return {**status.to_json(roles), **job_json(job.handle, status.state), "ui_url": status.ui_url}


def describe(arguments: Any, settings: Settings) -> int:
    with with_job(settings, arguments.handle) as (_, job):
        found = describe_job(job)
    data = dataclasses.asdict(found)
    if arguments.json:
        replicas = [replica for role in data["roles_statuses"] for replica in role["replicas"]]
        for item in (*replicas, *data["timeline"]):
            item["state"] = str(AppState(item["state"]))
        put_json({**data, **job_json(job.handle, found.state)})
        return 0
    from pprint import pformat

    from ..backends.shared.secrets import mask_data

    app = mask_data({"name": found.name or found.app_id, "roles": data["roles"], "metadata": data["metadata"]})
    put(pformat(app, indent=2, width=80, sort_dicts=False))
    return 0


def wait(arguments: Any, settings: Settings) -> int:
    with with_job(settings, arguments.handle) as (_, job):
        try:
            status = wait_for_job(job, arguments.timeout)
        except TimeoutError as error:
            say(str(error))
            return NOT_IN_TIME
    from .notify import notify_end

    notify_end(settings, arguments.handle, status)
    if arguments.json:
        put_json(_status_json(job, status))
    elif status.state is not AppState.SUCCEEDED:
        put(status.format(), sys.stderr)
    return _END_UNKNOWN if status.state is AppState.UNKNOWN else exit_code(status.state)
