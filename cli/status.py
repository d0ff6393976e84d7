"""The commands that look at jobs: list, status, describe, wait."""

from __future__ import annotations

import math
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

from ..base.durations import duration
from ..settings.make_runner import make_runner
from ..specs.errors import SchedulerError, UnknownAppException
from ..specs.handles import parse_app_handle
from ..specs.status import NONE, AppState
from .output import put, put_json, put_table, say

if TYPE_CHECKING:
    import argparse

    from ..backends.api import DescribeAppResponse, ListAppResponse
    from ..backends.runner import Runner
    from ..settings.config import Settings
    from ..specs.errors import BackendUnavailableError
    from ..specs.status import AppStatus

# What `wait` ends with where the job has not ended in time, as timeout(1) does.
NOT_IN_TIME = 124
# Terminal columns from which `list` shows more, and the time limit for reading logs for it (s).
_WIDE, _DETAILS_S = 140, 1.0
# Exit code of `wait` for a job whose end is unknown.
END_UNKNOWN = 125
WAIT_INTERVAL_SECONDS = 1.0
"""Seconds between two questions about a job that is waited for, as TorchX has it."""


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-s", "--scheduler", help="only the jobs of this scheduler")
    parser.add_argument(
        "-cfg", "--scheduler_args", metavar="K=V,...", help="run options of the scheduler, such as a namespace"
    )
    parser.add_argument(
        "--wide",
        action="store_true",
        help="show time, nodes, and the progress of running jobs by their logs, as a wide terminal does",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON array of objects")


def _add_status(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("handle")
    parser.add_argument("--roles", default="", metavar="A,B", help="only these roles")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def _add_describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("handle")
    parser.add_argument("--json", action="store_true", help="print a JSON object, with the values of secrets")


def _add_wait(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("handle")
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help=f"stop waiting after so many seconds; the exit code is {NOT_IN_TIME}",
    )
    parser.add_argument("--json", action="store_true", help="print the status at the end as a JSON object")


def _list(arguments: Any, settings: Settings) -> int:
    from ..settings.launch_defaults import LaunchDefaults, resolve

    defaults = LaunchDefaults.load(settings)
    listed = defaults.listed_scheduler()
    chosen = arguments.scheduler or (listed.value if listed else "")
    apps: list[ListAppResponse] = []
    details: list[str] = []
    mistakes = list(resolve(defaults).problems)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    is_wide = not arguments.json and (arguments.wide or width >= _WIDE)
    with make_runner(settings) as runner:
        if arguments.scheduler_args and not chosen:
            say("-cfg is for one scheduler: name it with -s")
            return 2
        for name in [chosen] if chosen else runner.watched_schedulers():
            try:
                options, problems = _options(runner, defaults, name, arguments.scheduler_args)
                mistakes += problems
                apps += runner.list(name, options)
                if missing := runner.scheduler(name).missing_jobs():
                    say(f"{name}: {missing}")
            except SchedulerError as error:
                if chosen:
                    raise
                say(f"{name} is left out: {error}")
        if is_wide:
            deadline = time.monotonic() + (math.inf if arguments.wide else _DETAILS_S)
            details = [_detail(runner, app, settings, deadline) for app in apps]
    for problem in dict.fromkeys(mistakes):
        say(problem)
    if arguments.json:
        put_json([_listed(app) for app in apps])
    else:
        # A long name hides no state on a terminal.
        most = max(20, width // 3) if width else sys.maxsize
        rows = [[app.app_handle, app.name[:most], app.state.name] for app in apps]
        header = ["APP HANDLE", "APP NAME", "APP STATUS"]
        if is_wide:
            header = [*header, "TIME", "NODES", "PROGRESS OR REASON"]
            rows = [[*row, _elapsed(app), app.host, words] for row, app, words in zip(rows, apps, details, strict=True)]
        put_table([header, *rows], width)
    return 0


def _elapsed(app: ListAppResponse) -> str:
    """Return how long a job has run."""
    if app.started_at is None:
        return ""
    return duration((app.finished_at or time.time()) - app.started_at)


def _detail(runner: Runner, app: ListAppResponse, settings: Settings, deadline: float) -> str:
    """Return the progress of a running job, or the reason for its state. Logs are read if they are local files.

    Args:
        runner: asks the job's scheduler.
        app: its row.
        settings: how progress is read.
        deadline: do not read logs after this time (`time.monotonic`).
    """
    handle, known = app.app_handle, "" if app.msg == NONE else app.msg
    is_told = app.state not in (AppState.RUNNING, AppState.FAILED)
    if is_told or time.monotonic() > deadline or not _has_log_files(runner, handle):
        return known
    from .progress import progress_at_end

    try:
        found = described(runner, handle)
        if app.state is AppState.FAILED:
            return _reason(runner, found, handle, settings)
        return ", ".join(progress_at_end(runner, handle, found, settings).words) or known
    except (SchedulerError, UnknownAppException):  # it has just ended, or its backend is away
        return known


def _has_log_files(runner: Runner, handle: str) -> bool:
    from ..backends.abilities import KeepsLogFiles

    return isinstance(runner.job(handle).scheduler, KeepsLogFiles)


def _options(
    runner: Runner, defaults: Any, name: str, text: str | None
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Return the run options of a listing, of config and of the command line, and mistakes in config."""
    from ..settings.launch_defaults import resolve

    if not text and not defaults.has_options(name):
        return None, ()
    known = runner.scheduler(name).run_opts()
    resolved = resolve(defaults, name, known)
    given = {key: option.value for key, option in resolved.options.items()}
    return {**given, **(known.cfg_from_str(text) if text else {})}, resolved.problems


def _listed(app: ListAppResponse) -> dict[str, Any]:
    import dataclasses

    scheduler, _, app_id = parse_app_handle(app.app_handle)
    rest: dict[str, Any] = dataclasses.asdict(app)
    del rest["app_handle"]
    return {"handle": app.app_handle, **rest, "app_id": app_id, "scheduler": scheduler, "state": str(app.state)}


def status_json(handle: str, status: AppStatus, roles: list[str] | None = None) -> dict[str, Any]:
    """Return what `status --json` prints: TorchX's keys."""
    scheduler, _, app_id = parse_app_handle(handle)
    named = {"handle": handle, "app_id": app_id, "scheduler": scheduler, "ui_url": status.ui_url}
    return {**status.to_json(roles), **named}


def described(runner: Runner, handle: str) -> DescribeAppResponse:
    """Return what a backend knows of a job.

    Raises:
        UnknownAppException: it knows nothing.
    """
    found = runner.job(handle).describe()
    if found is None:
        raise UnknownAppException(handle)
    return found


def _status(arguments: Any, settings: Settings) -> int:
    progress: dict[str, Any] = {}
    stall = ""
    with make_runner(settings) as runner:
        found = described(runner, arguments.handle)
        if found.state is AppState.RUNNING:
            progress = _progress_json(runner, found, arguments.handle, settings) if arguments.json else {}
            stall = "" if arguments.json else _stall(runner, found, arguments.handle, settings)
        found.msg = _reason(runner, found, arguments.handle, settings)
    roles = [role for role in arguments.roles.split(",") if role]
    there = [role.role for role in found.roles_statuses] or [role.name for role in found.roles]
    for role in roles:
        if role not in there:
            say(f"{arguments.handle} has no role {role}; its roles are {', '.join(there) or 'not known'}")
    if arguments.json:
        put_json({**status_json(arguments.handle, found.status(), roles), **progress})
    else:
        put(found.status().format(roles))
        _put_replicas(found, roles or there)
        if stall:
            put(f"Stalled: {stall}")
    return 0


def _put_replicas(found: DescribeAppResponse, roles: list[str]) -> None:
    """Print a table of the replicas with exit code or signal, node, start and run time, if any is known."""
    rows = []
    for replica in (one for role in found.roles_statuses if role.role in roles for one in role.replicas):
        ended = replica.signal or ("" if replica.exit_code is None else str(replica.exit_code))
        started, took = "", ""
        if replica.started_at is not None:
            started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(replica.started_at))
            took = duration((replica.finished_at or time.time()) - replica.started_at)
        rows.append([f"{replica.role}/{replica.id}", replica.state.name, ended, replica.node, started, took])
    if any(cell for row in rows for cell in row[2:]):
        put_table([["REPLICA", "STATE", "EXIT", "NODE", "STARTED", "TIME"], *rows])


def _reason(runner: Runner, found: DescribeAppResponse, handle: str, settings: Settings) -> str:
    """Return the reason for a job's state. For a failed job, read its logs if they are files on this machine."""
    if found.state is not AppState.FAILED or not _has_log_files(runner, handle):
        return found.msg
    from ..diagnosis.failure.explain import explain_job

    logs = runner.job(handle).replica_logs(found)
    explained = explain_job(runner, handle, found, logs, extra_patterns=settings.logs.error_patterns)
    return "; ".join(reason for reason in (explained.sentence, *found.reasons[1:]) if reason) or found.msg


def _stall(runner: Runner, found: DescribeAppResponse, handle: str, settings: Settings) -> str:
    """Describe the stall of a running job; empty if there is none or the logs are not files on this machine."""
    from .progress import stall_at_end

    return stall_at_end(runner, handle, found, settings) if _has_log_files(runner, handle) else ""


def _progress_json(runner: Runner, found: DescribeAppResponse, handle: str, settings: Settings) -> dict[str, Any]:
    """Return the key ``progress`` of a running job; nothing where its log tells none."""
    from .progress import job_activity, progress_json

    activity = job_activity(runner, handle, found, settings)
    data = progress_json(activity.progress)
    data.update({observation.kind.value: observation.sentence for observation in activity.observations})
    return {"progress": data} if data else {}


def _describe(arguments: Any, settings: Settings) -> int:
    import dataclasses
    from pprint import pformat

    with make_runner(settings) as runner:
        found = described(runner, arguments.handle)
    data = dataclasses.asdict(found)
    if arguments.json:
        scheduler, _, app_id = parse_app_handle(arguments.handle)
        named = {"handle": arguments.handle, "app_id": app_id, "scheduler": scheduler, "state": str(found.state)}
        for replica in (replica for role in data["roles_statuses"] for replica in role["replicas"]):
            replica["state"] = str(AppState(replica["state"]))
        for change in data["timeline"]:
            change["state"] = str(AppState(change["state"]))
        put_json({**data, **named})
        return 0
    from ..backends.shared.secrets import mask_data

    app = mask_data({"name": found.name or found.app_id, "roles": data["roles"], "metadata": data["metadata"]})
    put(pformat(app, indent=2, width=80, sort_dicts=False))
    return 0


def _wait(arguments: Any, settings: Settings) -> int:
    with make_runner(settings) as runner:
        try:
            status = runner.job(arguments.handle).wait(
                WAIT_INTERVAL_SECONDS, timeout=arguments.timeout, on_lost=say_outage
            )
        except TimeoutError as error:
            say(str(error))
            return NOT_IN_TIME
    if status is None:
        raise UnknownAppException(arguments.handle)
    from .notify import tell_end

    tell_end(settings, arguments.handle, status)
    if arguments.json:
        put_json(status_json(arguments.handle, status))
    elif status.state is not AppState.SUCCEEDED:
        say_status(status)
    if status.state is AppState.UNKNOWN:
        return END_UNKNOWN
    return 0 if status.state is AppState.SUCCEEDED else 1


def say_outage(error: BackendUnavailableError) -> None:
    """Say on stderr that a backend cannot be reached, and that it is asked again."""
    say(f"{error}; retrying until it answers")


def say_status(status: AppStatus) -> None:
    """Print how a job ended on stderr."""
    put(status.format(), sys.stderr)


COMMANDS = {
    "list": (_add_list, _list),
    "status": (_add_status, _status),
    "describe": (_add_describe, _describe),
    "wait": (_add_wait, _wait),
}
