"""Rows and descriptions: an app in the words of the scheduler contract."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...base.files import user_name
from ...logs.text.sanitize import plain
from ...specs.status import NONE, AppState, ReplicaStatus, RoleStatus, is_terminal
from ..shared.exit_reasons import signal_name, some_of
from ..types import BY_TORCHX, DescribeAppResponse, ListAppResponse, StateChange
from .ends import UNKNOWN_END, TaskEnd, asked_memory, batch_output_end, replica_ends, why_ended
from .jobs import GONE, LOST, App, Job
from .launches import RecordedLaunch
from .log_files import log_files
from .ports import served_ports
from .reasons import code_of
from .replicas import Replica, is_torchx
from .request import without_key
from .submit_line import RelaunchPlan
from .values import format_duration, format_size, parse_count, parse_size, parse_tres
from .waiting import clock, dependency_ids, expected_start, why_waits

# The use of a shorter job (s) says nothing about the next one; a hint must save at least a quarter.
_SHORT_S, _MUCH_LESS = 60.0, 0.75
_MEMORY_STEP = 100 << 20
# Below this, GPUs mostly wait.
_IDLE_GPU_PERCENT = 25
_TASKS = {
    AppState.FAILED: "failed",
    AppState.CANCELLED: "cancelled",
    AppState.SUCCEEDED: "done",
    AppState.RUNNING: "running",
    AppState.PENDING: "pending",
}
_PASSING = {
    "COMPLETING": "it has ended, and its nodes are being cleaned up",
    "CONFIGURING": "its nodes are booting",
    "STAGE_OUT": "its data is being copied back",
    "SUSPENDED": "it was suspended by an administrator or by a job of higher priority",
    "STOPPED": "it was stopped by a signal and keeps its nodes",
    "REQUEUED": "it is being requeued",
    "REQUEUE_HOLD": "it was requeued and is held: release it",
    "SPECIAL_EXIT": "it was requeued and is held: release it",
    "RESIZING": "it is being resized",
    GONE: "it has left the queue, and this cluster has no accounting: how it ended is not known",
    LOST: "it has left the queue, and accounting does not say how it ended",
}


def list_row(
    app: App, launch: RecordedLaunch | None, known: Mapping[str, App], after: Sequence[str]
) -> ListAppResponse:
    """Return the row of an app.

    Args:
        app: the app.
        launch: its launch if it was made here.
        known: the apps that are known, for the names of those that it waits for.
        after: the ids of those that it was queued behind.
    """
    state = app.state
    by_torchx = launch is None and is_torchx(app)
    counts = _counts(app, launch, by_torchx)
    return ListAppResponse(
        app_id=app.app_id,
        state=state,
        name=_name(app, launch),
        submitted_at=app.submitted_at,
        started_at=app.started_at,
        finished_at=app.finished_at,
        replicas_running=counts[AppState.RUNNING],
        replicas_wanted=sum(counts.values()),
        replicas_succeeded=counts[AppState.SUCCEEDED],
        user=app.first.user,
        msg=_after(app, known) or _row_why(app),
        host=_nodes(app) if state is AppState.RUNNING else "",
        notes=[BY_TORCHX] if by_torchx else [],
        limit_at=_limit_at(app),
        foreign=launch is None and not by_torchx and app.first.user != user_name(),
        after=[*after],
    )


def describe_app(
    app: App,
    launch: RecordedLaunch | None,
    evidence: Sequence[str],
    steps: Sequence[Job],
    relaunch: RelaunchPlan | None,
    earlier: Sequence[Job],
    replicas: Sequence[Replica],
) -> DescribeAppResponse:
    """Return the description of an app.

    Args:
        app: the app.
        launch: what is known of its launch, if it was launched here.
        evidence: further sentences on why it is in its state.
        steps: its steps from accounting, once it has ended.
        relaunch: what launches it again, if it was not launched here.
        earlier: its runs before it was requeued.
        replicas: its replicas.
    """
    notes: list[str] = []
    by_torchx = launch is None and is_torchx(app)
    app_def = launch.app_def(notes) if launch is not None else None
    relaunch = relaunch or RelaunchPlan([], {}, {})
    roles = app_def.roles if app_def is not None else relaunch.roles
    batch_output = ""
    if app.state is AppState.FAILED and not app.is_array:
        batch_output = batch_output_end(log_files(app.first)[0])
    # The steps of an array are those of its tasks.
    ends = {} if app.is_array else replica_ends(batch_output, replicas, steps)
    why = _why(app, batch_output, steps)
    reasons = [*filter(None, (why, *evidence))]
    if by_torchx:
        notes.append(BY_TORCHX)
    return DescribeAppResponse(
        app_id=app.app_id,
        state=app.state,
        num_restarts=app.restarts,
        msg="; ".join(reasons) or NONE,
        reasons=reasons if len(reasons) > 1 else [],
        metadata={**_metadata(app), **efficiency(app, steps), **({"earlier runs": _runs(earlier)} if earlier else {})},
        roles_statuses=_role_statuses(app, replicas, ends),
        roles=roles,
        name=_name(app, launch),
        submitted_at=app.submitted_at,
        started_at=app.started_at,
        finished_at=app.finished_at,
        timeline=_timeline(app),
        user=app.first.user,
        host=_nodes(app),
        notes=notes,
        image=roles[0].image if roles else "",
        log_dir=app.first.work_dir if launch is None or launch.is_script else launch.folder,
        insight_dir=str(Path(launch.insight, app.app_id)) if launch is not None and launch.insight else "",
        cfg=launch.cfg if launch is not None else relaunch.cfg,
        not_known=relaunch.not_known,
        ports=served_ports(replicas),
    )


def _name(app: App, launch: RecordedLaunch | None) -> str:
    if launch is not None:
        return launch.name
    return app.first.name.rpartition("-")[0] if is_torchx(app) else app.first.name


def _counts(app: App, launch: RecordedLaunch | None, by_torchx: bool) -> Counter[AppState]:
    """Return the number of replicas in each state."""
    counts: Counter[AppState] = Counter()
    if app.is_array or by_torchx:
        for job in app.jobs:
            counts[job.app_state] += len(job.task_numbers()) if app.is_array else 1
    else:
        counts[app.state] = launch.replicas if launch is not None else 1
    return counts


def _why(app: App, batch_output: str = "", steps: Sequence[Job] = ()) -> str:
    """Return why an app is in its state, empty if there is nothing to say."""
    if app.is_array and app.state is AppState.RUNNING:
        counts = _counts(app, None, by_torchx=False)
        shown = ", ".join(f"{counts[state]} {word}" for state, word in _TASKS.items() if counts[state])
        waiting = next((job for job in app.jobs if job.app_state is AppState.PENDING), None)
        return f"{shown}: {_why_job(waiting)}" if waiting else shown
    # The components of a job differ in their state only for moments.
    reasons = (_why_job(job, batch_output, steps) for job in app.jobs if job.app_state is app.state)
    return next(filter(None, reasons), "")


def _row_why(app: App) -> str:
    """Return why an app is in its state; while it waits, Slurm's own word and estimate go first: cells are narrow."""
    why, job = _why(app), app.first
    word = plain(code_of(job.reason))
    if app.state is not AppState.PENDING or job.state != "PENDING" or word in ("", "None") or word in why:
        return why
    at = expected_start(job)
    return f"{word}, start {clock(at)}: {why}" if at is not None else f"{word}: {why}"


def _why_job(job: Job, batch_output: str = "", steps: Sequence[Job] = ()) -> str:
    if job.state in _PASSING:
        return _PASSING[job.state]
    if job.state == "PENDING":
        found = why_waits(job)
        return f"{found.sentence}: {found.hint}" if found.hint else found.sentence
    if job.app_state is AppState.UNKNOWN:
        return f"Slurm says {job.state}" if job.state else "Slurm does not say its state"
    return why_ended(job, batch_output, steps)


def efficiency(app: App, steps: Sequence[Job]) -> dict[str, str]:
    """Return the used share of CPUs and memory, as seff(1) computes it; empty for an array.

    For a job that succeeded after a while it says what would have been enough.
    """
    job, found = app.first, dict[str, str]()
    if app.is_array or len(app.jobs) > 1 or not steps:
        return found
    is_long = app.state is AppState.SUCCEEDED and (job.elapsed or 0) >= _SHORT_S
    if job.elapsed and job.cpus:
        share = sum(step.cpu_seconds or 0 for step in steps) / (job.elapsed * job.cpus)
        enough = max(job.nodes, math.ceil(share * job.cpus), 1)
        hint = f": {enough} would have been enough" if is_long and enough <= job.cpus * _MUCH_LESS else ""
        found["cpu used"] = f"{100 * share:.0f} % of {job.cpus} cpu{hint}"
    used, asked = max((step.max_rss or 0) * max(1, step.ntasks) for step in steps), asked_memory(job)
    if used and asked:
        # With a fifth to spare, in steps that one would type.
        enough = math.ceil(used * 1.2 / _MEMORY_STEP) * _MEMORY_STEP
        hint = f": {format_size(enough)} would have been enough" if is_long and enough <= asked * _MUCH_LESS else ""
        found["memory used"] = f"{format_size(used)} of {format_size(asked)}, {100 * used / asked:.0f} %{hint}"
    # Of GPUs by the step that used them most, if the site gathers it.
    gpus = parse_count(parse_tres(job.tres).get("gres/gpu", ""))
    usages = [parse_tres(step.usage) for step in steps]
    utils = [parse_count(usage["gres/gpuutil"]) for usage in usages if usage.get("gres/gpuutil")]
    if utils and gpus:
        share = min(100, max(utils) // gpus)
        hint = ": ask for fewer GPUs, or give them more to do" if share < _IDLE_GPU_PERCENT else ""
        found["gpu used"] = f"{share} % of {gpus} gpu{hint}"
    if memory := max(parse_size(usage.get("gres/gpumem", "")) or 0 for usage in usages):
        found["gpu memory used"] = f"{format_size(memory)} in all tasks"
    return found


def _role_statuses(app: App, replicas: Sequence[Replica], ends: Mapping[tuple[str, int], TaskEnd]) -> list[RoleStatus]:
    roles: dict[str, list[ReplicaStatus]] = {}
    is_only = sum(replica.step is None for replica in replicas) == 1
    for replica in replicas:
        end = ends.get((replica.role, replica.number)) or _end_of(replica, is_only)
        roles.setdefault(replica.role, []).append(_replica_status(app, replica, end))
    return [RoleStatus(role, statuses) for role, statuses in roles.items()]


def _end_of(replica: Replica, is_only: bool) -> TaskEnd:
    """Return how a replica ended by its job or step: a failure is known for the only replica alone."""
    job, step = replica.job, replica.step
    if step is not None:
        # Accounting has the highest code of a step's tasks.
        is_known = step.ntasks <= 1 or step.exit_code == 0
        return TaskEnd.of(step.exit_code, step.signal) if is_known else UNKNOWN_END
    if job.app_state is AppState.SUCCEEDED:
        return TaskEnd(0, 0)
    if (is_only or job.array_id) and job.state in ("FAILED", "OUT_OF_MEMORY"):
        return TaskEnd.of(job.exit_code, job.signal)
    return UNKNOWN_END


def _replica_status(app: App, replica: Replica, end: TaskEnd) -> ReplicaStatus:
    step, record = replica.step, replica.step or replica.job
    # Components run and end together.
    state = record.app_state if step is not None or app.is_array else app.state
    reason = _why_job(record) if app.is_array else ""
    if not is_terminal(state):
        end = UNKNOWN_END
    elif step is not None and step.exit_code != 0 and end == UNKNOWN_END:
        reason = f"a task of {plain(step.name)}: {TaskEnd.of(step.exit_code, step.signal)}"
    elif not reason and end.exit_code != 0:
        reason = str(end)
    return ReplicaStatus(
        id=replica.number,
        state=state,
        role=replica.role,
        hostname=replica.node,
        exit_code=end.exit_code,
        signal=signal_name(-end.signal) if end.signal else "",
        reason=reason,
        node=replica.node,
        started_at=record.start,
        finished_at=record.end,
        restarts=max(0, app.restarts) if step is None else 0,
    )


def _timeline(app: App) -> list[StateChange]:
    changes, latest = [], 0.0
    for state, at in (
        (AppState.PENDING, app.submitted_at),
        (AppState.RUNNING, app.started_at if app.state is not AppState.PENDING else None),
        (app.state, app.finished_at),
    ):
        if at is not None:
            latest = max(latest, at)
            changes.append(StateChange(state, latest))
    return changes


def _after(app: App, known: Mapping[str, App]) -> str:
    """Return which jobs an app waits for, by name; empty where it waits for none."""
    job = app.first
    if app.state is not AppState.PENDING or code_of(job.reason) != "Dependency":
        return ""
    ids = dict.fromkeys(dependency_ids(job.dependency))
    names = [f"{plain(known[app_id].first.name)} {app_id}" if app_id in known else app_id for app_id in ids]
    return f"after {some_of(names)}" if names else ""


def _runs(runs: Sequence[Job]) -> str:
    """Return how the runs of a job before its requeues ended, with node and duration."""
    return some_of(
        run.state
        + (f" on {run.node_list}" if run.node_list else "")
        + (f" after {format_duration(run.elapsed)}" if run.elapsed else "")
        for run in runs
    )


def _limit_at(app: App) -> float | None:
    """Return when an app that runs reaches its time limit; an array's tasks have one each."""
    job = app.first
    if app.is_array or app.state is not AppState.RUNNING or job.start is None or job.limit is None:
        return None
    return job.start + job.limit


def _nodes(app: App) -> str:
    return ",".join(dict.fromkeys(job.node_list for job in app.jobs if job.node_list))


def _metadata(app: App) -> dict[str, str]:
    """Return further facts of the job, by the names that sbatch and squeue use."""
    job = app.first
    stdout, _ = log_files(job)
    values = {
        "partition": job.partition,
        "account": job.account,
        "qos": job.qos,
        "reservation": job.reservation,
        "constraint": job.features,
        "dependency": job.dependency,
        "priority": "" if is_terminal(app.state) else job.priority,
        "time limit": format_duration(job.limit) if job.limit else "",
        "nodes": _nodes(app) or job.scheduled_nodes,
        "resources": job.tres,
        "memory": job.memory,
        "command": job.command,
        "comment": without_key(job.comment),
        "batch output": str(stdout) if stdout is not None and not app.is_array else "",
    }
    return {name: value for name, value in values.items() if value}
