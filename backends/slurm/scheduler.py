"""The scheduler slurm: an app is a job of a Slurm cluster, its replicas are tasks that ``srun`` starts."""

from __future__ import annotations

import builtins
import logging
import re
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ...base.files import user_name
from ...logs.text.sanitize import plain
from ...specs.errors import JobNotFoundError, LogUnreadableError, SchedulerError
from ...specs.roles import AppDef, AppDryRunInfo
from ...specs.run_options import CfgVal, runopts
from ...specs.status import AppState, is_terminal
from ..api import (
    Alternative,
    Capabilities,
    ClusterStatus,
    DescribeAppResponse,
    Finding,
    JobAction,
    ListAppResponse,
    NameFault,
    PartitionStatus,
    ReplicaUsage,
    Scheduler,
    StartEstimate,
    Stream,
)
from ..shared.bounded_command import RUN_BESIDE_S, CommandOutput
from ..shared.factories import accepted_arguments
from ..shared.secrets import mask_text
from ..workspace.mixin import DirWorkspaceMixin
from . import commands
from .accounting import Accounting
from .actions import act, cancel, job_actions, run_beside, shell_command
from .advice import Advisor
from .client import Client
from .cluster import Cluster
from .cluster_status import cluster_status
from .dependencies import Chains
from .describe import describe_app, list_row
from .jobs import BATCH, App, Job, parse_id
from .known_jobs import HISTORY_DAYS, KnownJobs
from .launches import LaunchStore, RecordedLaunch, parse_launch
from .log_files import with_files
from .options import SlurmOpts
from .replicas import Replica, find_replica, replicas_of
from .request import SlurmRequest, check_app, make_request, masked_script, name_faults
from .script import launch_in
from .shared_answer import Intervals
from .steps import step_replicas
from .submit_line import plan_relaunch
from .usage import UsageSampler
from .waiting import evidence, with_true_reason

logger = logging.getLogger(__name__)

# Submitting may wait for a busy controller longer than a question does (s).
_SUBMIT_S = 60.0
_NO_FILE = Path("/dev/null")
_JOB_ID = re.compile(r"^(?P<id>\d+)(?:;|$)", re.MULTILINE)


class SlurmScheduler(DirWorkspaceMixin, Scheduler[Mapping[str, CfgVal]]):
    """Runs apps as jobs of a Slurm cluster, by the commands on the PATH.

    An app is one allocation, in which each role is a step whose tasks are its replicas; roles that differ in resources
    are components of a heterogeneous job. A job that fails is queued again as often as all its roles may be retried.
    Logs are files in the folder of the launch, or in the run option ``job_dir``; they have TorchX's names.

    All jobs of this user are listed: ours, TorchX's, and those of their own scripts.

    Args:
        session_name: the session part of handles.
        interval: seconds between two questions about the queue, of all sessions of this user on this host together;
            while nothing changes there, 2.5 times as long.
        quick_interval: the same for half a minute after an action of this user's.
        history_days: how far back accounting is asked for jobs that have left the queue, in days.
        all_users: list the queue of every user, not of this one alone.
        records: the folder of launches; the state folder's ``slurm`` if None.
        insight: allow to ask ranks for their stacks and flight recorders, see `backends/shared/insight.py`.
    """

    capabilities = Capabilities(
        log_streams=(Stream.STDOUT, Stream.STDERR, Stream.COMBINED),
        retries=True,
        dependencies=True,
        working_folder=True,
        batch_scripts=True,
    )
    runs_once_per_node = True

    def __init__(
        self,
        session_name: str,
        *,
        interval: float = 10.0,
        quick_interval: float = 2.0,
        history_days: float = HISTORY_DAYS,
        all_users: bool = False,
        records: Path | None = None,
        insight: bool = True,
    ) -> None:
        super().__init__("slurm", session_name)
        self._all_users = all_users
        self._intervals = Intervals(interval, quick_interval)
        self._records_folder = records
        self._insight = insight
        self._client = Client()
        self._accounting = Accounting(self._client)
        self._cluster = Cluster(self._client, self._intervals.usual)
        self._advisor = Advisor(self._client, self._cluster, session_name, self._intervals.usual)
        self._usage = UsageSampler(self._client, self._accounting)
        self._chains = Chains()
        self._rows: dict[str, _Row] = {}
        self._jobs_of = cache(
            lambda all_users: KnownJobs(
                self._client, self._accounting, self._intervals, history_days, all_users=all_users
            )
        )

    # Objects with files are made at first use: run options need no folder.

    @property
    def _jobs(self) -> KnownJobs:
        return self._jobs_of(self._all_users)

    @cached_property
    def _launches(self) -> LaunchStore:
        return LaunchStore(
            self._records_folder, lambda job_id: parse_launch(launch_in(self._accounting.script(job_id)))
        )

    # Launching

    def _run_opts(self) -> runopts:
        return SlurmOpts.as_runopts()

    def known_values(self) -> dict[str, builtins.list[str]]:
        """Return the partitions, the default first; see `KnowsValues`."""
        names = self._cluster.partition_names()
        return {"partition": names} if names else {}

    def _submit_dryrun(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> AppDryRunInfo[SlurmRequest]:
        check_app(app)
        opts = SlurmOpts.from_cfg(cfg)
        insight = self._launches.insight_folder if self._insight else None
        return AppDryRunInfo(make_request(app, self.session_name, opts, self._cluster.tracks_memory, insight), str)

    def build_workspaces(self, roles: Any, cfg: Mapping[str, CfgVal]) -> None:
        """Copy workspaces into job_dir; see `WorkspaceMixin.build_workspaces`.

        Raises:
            SchedulerError: there is no job_dir, or a workspace cannot be copied.
        """
        if any(role.workspace for role in roles) and not cfg.get("job_dir"):
            raise SchedulerError("a workspace is copied into job_dir: set it to a folder that does not exist yet")
        super().build_workspaces(roles, cfg)

    def schedule(self, dryrun_info: AppDryRunInfo[SlurmRequest]) -> str:
        """Submit the request of a dry run, and return the job's id.

        Raises:
            SchedulerError: Slurm refused it; the message is Slurm's.
        """
        request = dryrun_info.request
        env = {**commands.submit_environment(), **request.env}
        answer = commands.run(request.command, stdin=request.script, env=env, timeout=_SUBMIT_S)
        self._jobs.actions.note()
        found = _JOB_ID.search(answer.out)
        if answer.code != 0 or found is None:
            raise commands.failure("sbatch", answer)
        try:
            self._launches.add(found["id"], request.launch)
        except OSError as error:
            # The batch script has the same.
            logger.warning("the launch of %s cannot be kept: %s", found["id"], error)
        return found["id"]

    def _validate(self, app: AppDef, scheduler: str, cfg: Mapping[str, CfgVal]) -> None:
        """Accept roles without resources: they get what the partition gives by default."""

    # Watching

    def describe(self, app_id: str) -> DescribeAppResponse | None:
        """Describe a job of any user, an array's task or a step; None if nobody knows it."""
        app = self._find(app_id)
        if app is None:
            return None
        described = self._describe(app)
        if step := app_id.partition(".")[2]:
            role, statuses = BATCH if step == BATCH else f"step{step}", described.roles_statuses
            # A step with a single task has no role of its own.
            described.roles_statuses = [status for status in statuses if status.role == role] or statuses
        described.app_id = app_id
        return described

    def _describe(self, app: App) -> DescribeAppResponse:
        launch, plan = self._launches.find(app), None
        if launch is None:
            script = self._accounting.script(app.app_id)
            plan = plan_relaunch(app.first, script, self._accounting.submit_line(app) if script else "")
        app, earlier = self._with_files(app, launch), self._accounting.earlier_runs(app)
        found: builtins.list[str] = []
        steps: builtins.list[Job] = []
        waiting = next((job for job in app.jobs if job.app_state is AppState.PENDING), None)
        if waiting is not None:
            found = evidence(waiting, self._cluster, self._jobs.apps())
            app = App(app.app_id, [with_true_reason(job, self._cluster) for job in app.jobs])
        elif is_terminal(app.state):
            app, steps = self._accounting.details(app)
        return describe_app(app, launch, found, steps, plan, earlier, self._replicas(app, launch))

    def describe_native(self, app_id: str) -> str:
        """Return the output of ``scontrol show job``, and the batch script if Slurm keeps it, secret values masked.

        Raises:
            JobNotFoundError: there is no such job.
        """
        app = self._get(app_id)
        try:
            text = self._client.ask(["scontrol", "show", "job", app.app_id])
        except SchedulerError:
            # The controller forgets a job some minutes after its end.
            text = self._client.ask(["sacct", "--jobs", app.app_id, "--format", "ALL", "--parsable2"])
        return f"{mask_text('', text).rstrip()}\n\n{self._shown_script(app)}"

    def list(self, cfg: Mapping[str, CfgVal] | None = None) -> builtins.list[ListAppResponse]:
        """Return all jobs of this user, the latest first: those of the queue, and those of accounting."""
        apps = self._jobs.apps()
        shown, launches = self._launches.find_shown(apps)
        chains = self._chains.find(apps, launches, self._jobs.accounted())
        before, rows = self._rows, {}
        for app_id, app in shown.items():
            launch, after, kept = launches.get(app_id), chains.get(app_id, []), before.get(app_id)
            if kept is None or kept.app is not app or kept.launch is not launch or kept.row.after != after:
                kept = _Row(app, launch, _row_of(app, launch, apps, after))
            rows[app_id] = kept
        self._rows = rows
        return sorted((kept.row for kept in rows.values()), key=lambda row: row.submitted_at or 0.0, reverse=True)

    def exists(self, app_id: str) -> bool:
        """Return whether a job is known; only the queue is asked for one that is in it."""
        return self._find(app_id, in_queue=True) is not None

    def missing_jobs(self) -> str:
        """Return why jobs that have left the queue may be missing; see `Scheduler.missing_jobs`."""
        return self._jobs.missing_jobs()

    def set_all_users(self, all_users: bool) -> None:
        """Let `list` return the queue of every user; accounting is asked for this user's jobs in any case."""
        self._all_users = all_users

    def usage(self, app_id: str) -> builtins.list[ReplicaUsage]:
        """Measure what running replicas use, see `MeasuresUsage`; nothing of other users' jobs."""
        app = self._get(app_id)
        return self._usage.measure(app, replicas_of(app, self._launches.find(app)))

    def shell_command(self, app_id: str, role_name: str, k: int) -> builtins.list[str]:
        """Return the srun command that opens a shell in the allocation of a replica, on its node if known.

        Raises:
            SchedulerError: there is no such replica, or it does not run.
        """
        try:
            replica = self._replica(self._get(app_id), role_name, k)
        except ValueError as error:
            raise SchedulerError(str(error)) from error
        if replica.job.app_state is not AppState.RUNNING:
            raise SchedulerError(f"{app_id} is not running: a shell needs its allocation; wait until it has started")
        return shell_command(replica)

    def run_beside(
        self, app_id: str, role_name: str, k: int, argv: Sequence[str], timeout_s: float = RUN_BESIDE_S
    ) -> CommandOutput:
        """Run a command on a replica's node, in a step beside it; see `RunsCommands`."""
        replica = self._replica(self._get(app_id), role_name, k)
        if replica.job.app_state is not AppState.RUNNING:
            raise SchedulerError(f"{role_name}/{k} of {app_id} is not running")
        return run_beside(replica, argv, timeout_s)

    # Ending

    def _cancel_existing(self, app_id: str) -> None:
        app = self._find(app_id, in_queue=True)
        if app is not None and not is_terminal(app.state):
            try:
                cancel(app_id)
            finally:
                self._jobs.actions.note()

    def _delete_existing(self, app_id: str) -> None:
        """Cancel a job, remove its launch's files, and hide it; logs and Slurm's own records stay."""
        app = self._get(app_id)
        if not app_id.isdecimal():
            raise SchedulerError(f"{app_id} is a part of the job {app.app_id}, which can be deleted as a whole only")
        self._cancel_existing(app_id)
        self._launches.hide(app)

    def actions(self, app_id: str) -> builtins.list[JobAction]:
        """List the actions that are possible now: hold, requeue, its time limit, a signal, an array's tasks."""
        return job_actions(self._get(app_id))

    def act(self, app_id: str, action: str, value: str = "") -> None:
        """Do one of `actions`; see `HasActions.act`."""
        app = self._get(app_id)
        if action not in {offered.name for offered in job_actions(app)}:
            raise SchedulerError(f"{app_id} is {app.state.name}, so {action} is not possible now")
        try:
            act(app_id.partition(".")[0], action, value)
        finally:
            self._jobs.actions.note()

    # Logs

    def log_files(self, app_id: str, role_name: str, k: int) -> dict[Stream, Path]:
        """Return the files of one replica's log; see `KeepsLogFiles`."""
        replica = self._replica(self._get(app_id), role_name, k)
        if replica.job.end is not None and not replica.job.has_run:
            raise LogUnreadableError(f"{app_id} was cancelled before it started: it has no log")
        if not replica.job.is_batch:
            raise LogUnreadableError(f"{app_id} has no log: srun or salloc wrote its output to a terminal")
        if replica.stdout is None and replica.step is not None:
            raise LogUnreadableError(f"{role_name} has no log of its own: its output is in that of {BATCH}/0")
        if replica.stdout is None:
            raise SchedulerError(
                f"it is not known where the log of {app_id} is: Slurm no longer knows the job, and accounting "
                "has neither its file nor its script (slurm.conf: AccountingStoreFlags=job_script)"
            )
        if {replica.stdout, replica.stderr} <= {_NO_FILE, None}:
            raise LogUnreadableError(f"the output of {app_id} went to {_NO_FILE}: it has no log")
        files = {Stream.STDOUT: replica.stdout}
        return {**files, Stream.STDERR: replica.stderr} if replica.stderr is not None else files

    def has_ended(self, app_id: str) -> bool:
        """Return whether a job writes no more."""
        app = self._find(app_id)
        return app is None or is_terminal(app.state) or app.state is AppState.UNKNOWN

    # Advice

    def check(self) -> builtins.list[Finding]:
        """Return Slurm's version, its partitions, and how often it is asked; or why it cannot be used."""
        found = self._cluster.findings()
        # Where there is no controller, accounting is the smaller trouble.
        is_reached = not any(finding.level == "error" for finding in found)
        return [*found, *(self._jobs.check_accounting() if is_reached else ())]

    def check_names(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> builtins.list[NameFault]:
        """Return the names that cannot be those of a job and its log files; see `ChecksNames`."""
        return [*name_faults(app)]

    def preflight(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> builtins.list[Finding]:
        """Find what sbatch would accept and never start, what would go wrong on the nodes, and when it would start."""
        check_app(app)
        return [*self._advisor.findings(app, self._opts(cfg))]

    def partitions(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> builtins.list[PartitionStatus]:
        """Return the partitions, with nodes and GPUs, limits, and when this app would start there."""
        check_app(app)
        return self._advisor.partitions(app, self._opts(cfg))

    def cluster(self) -> ClusterStatus:
        """Return partitions, nodes and limits; see `DescribesCluster`."""
        return cluster_status(self._cluster, user_name(), self._intervals.usual)

    def estimate_start(self, pool: str) -> StartEstimate:
        """Return when a job of one task would start in a partition; see `EstimatesStarts`."""
        return self._advisor.estimate_start(pool)

    def alternatives(self, app_id: str) -> builtins.list[Alternative]:
        """List requests that would start sooner than a pending job; see `SuggestsAlternatives`."""
        app, described = self._get(app_id), self.describe(app_id)
        if described is None or not described.roles:
            raise SchedulerError(f"{app_id} cannot be asked about: its batch script or its sbatch command is unknown")
        opts = self._opts(described.cfg)
        return self._advisor.alternatives(app.first, AppDef(described.name, described.roles), opts)

    def _opts(self, cfg: Mapping[str, CfgVal]) -> SlurmOpts:
        return SlurmOpts.from_cfg(self.run_opts().resolve(cfg))

    # Lookups

    def _find(self, app_id: str, *, in_queue: bool = False) -> App | None:
        """Return an app, or the task of an array that an id names; with ``in_queue`` as the queue alone has it."""
        if (part := parse_id(app_id)) is None:
            return None
        job_id, task = part
        for find in (self._jobs.find_queued, self._jobs.find) if in_queue else (self._jobs.find,):
            app = find(job_id)
            if app is not None and task is not None:
                app = app.with_task(task)
            if app is not None and self._launches.find_shown({app.app_id: app})[0]:
                return app
        return None

    def _get(self, app_id: str) -> App:
        app = self._find(app_id)
        if app is None:
            raise JobNotFoundError(app_id, "slurm")
        return app

    def _replica(self, app: App, role_name: str, k: int) -> Replica:
        launch = self._launches.find(app)
        app = self._with_files(app, launch)
        return find_replica(app, self._replicas(app, launch, k), role_name, k)

    def _replicas(self, app: App, launch: RecordedLaunch | None, task: int | None = None) -> builtins.list[Replica]:
        """Return the replicas of a job, and for a user's own script those of its steps."""
        replicas = replicas_of(app, launch, task)
        if len(replicas) == len(app.jobs) == 1 and replicas[0].role == BATCH and app.started_at is not None:
            replicas += step_replicas(app, self._accounting.details(app)[1], self._accounting.script(app.app_id))
        return replicas

    def _shown_script(self, app: App) -> str:
        """Return the batch script for people; ours is made anew, since it contains the AppDef with its secrets."""
        launch = self._launches.find(app)
        if launch is None:
            return masked_script(self._accounting.script(app.app_id))
        app_def = launch.app_def([])
        if app_def is None:
            return ""
        opts = SlurmOpts.from_cfg(launch.cfg)
        return make_request(app_def, self.session_name, opts, lambda partition: True).shown

    def _with_files(self, app: App, launch: RecordedLaunch | None) -> App:
        """Complete an app of accounting's records by the log files that its script names."""
        if all(job.stdout or not job.accounted for job in app.jobs) or (launch is not None and not launch.is_script):
            return app
        return with_files(app, self._accounting.script(app.app_id))


def _row_of(
    app: App, launch: RecordedLaunch | None, known: Mapping[str, App], after: builtins.list[str]
) -> ListAppResponse:
    """Return the row of an app; a record that cannot be described costs its own row's message alone."""
    try:
        return list_row(app, launch, known, after)
    except Exception as error:
        logger.exception("the row of %s cannot be made", app.app_id)
        message = f"its record cannot be read: {type(error).__name__}: {plain(str(error))[:200]}"
        return ListAppResponse(app_id=app.app_id, state=app.state, name=app.first.name, msg=message)


class _Row(NamedTuple):
    """A row, and what it was made of: most are the same the next time."""

    app: App
    launch: RecordedLaunch | None
    row: ListAppResponse


def create_scheduler(session_name: str, **kwargs: Any) -> SlurmScheduler:
    """Return the scheduler slurm. Pass the arguments that `SlurmScheduler` takes, and ignore others."""
    return SlurmScheduler(session_name, **accepted_arguments(SlurmScheduler, kwargs))


__all__ = ["SlurmOpts", "SlurmRequest", "SlurmScheduler", "create_scheduler"]
