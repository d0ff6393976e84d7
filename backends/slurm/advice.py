"""Advice before a launch and while a job waits: limits, estimates, partitions with room, what would start sooner.

Estimates are those of ``sbatch --test-only``, which ignores dependencies and the limits of accounts and QOS. For a job
that never starts it names a date centuries ahead, but also for jobs that start at once while others without a time
limit run (seen with 22.05).
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from ...logs.text.sanitize import plain
from ...specs.batch_script import script_of
from ...specs.errors import BackendUnavailableError, SchedulerError
from ...specs.roles import AppDef
from ..types import Alternative, Finding, PartitionStatus, StartEstimate, pool_of
from . import commands
from .client import Client
from .cluster import Cluster, Partition
from .jobs import MOST_AHEAD_S, Job
from .limits import REFUSED, asked_for, exceeded_limits, with_size
from .options import SlurmOpts
from .reasons import reason
from .request import launch_findings, make_request
from .shared_answer import Intervals, SharedAnswer, answers_folder
from .values import count_whole, parse_count, parse_duration, parse_tres
from .waiting import clock, expected_start, with_true_reason

# Each estimate is a run of the scheduler.
_MAX_ESTIMATES = 6
_ESTIMATE_KEPT_S = 60.0
# Of a job of one task, for all sessions on this host.
_START_KEPT_S = 30.0
_LEAST_TIME_S = 120
# From 25.05 on a letter or ` on cluster NAME` may follow the time.
_START = re.compile(r"to start at (?P<at>\d+)\b.*? using \d+ processors on nodes (?P<nodes>\S+) in partition ")
_REFUSAL = re.compile(r"^(?:sbatch: error: )?allocation failure: ", re.MULTILINE)
PENDS = "sbatch would accept it, but it would never start"
_SMALL_JOB = ("--test-only", "--ntasks=1", "--wrap=true")
_NO_ESTIMATE = "Slurm gives no estimate of the start"
# sbatch accepts some of these jobs, which then never start; it refuses all others.
_UNCLEAR = ("Requested node configuration ", "Requested partition configuration ", "Required node ")


class Estimate(NamedTuple):
    """Slurm's estimate for a request.

    Attributes:
        start: when it would start, in seconds since the epoch; None if it would not.
        nodes: the nodes that it would get.
        fault: why it would not start, empty if it would.
        verdict: what sbatch does with a job that exceeds a limit.
    """

    start: float | None
    nodes: str = ""
    fault: str = ""
    verdict: str = PENDS


def parse_estimate(answer: commands.Answer) -> Estimate | None:
    """Parse an answer of ``sbatch --test-only``; return None if it has no estimate.

    Raises:
        SchedulerError: sbatch does not take the request, or Slurm cannot be reached.
    """
    if answer.code == 0:
        found = _START.search(answer.err)
        if found is None:
            return None
        start = float(found["at"])
        if start > time.time() + MOST_AHEAD_S:
            return Estimate(None, fault=_NO_ESTIMATE)
        return Estimate(start, plain(found["nodes"]))
    if not _REFUSAL.search(answer.err):
        raise commands.failure("sbatch", answer)
    fault = commands.error_text("sbatch", answer).replace("allocation failure: ", "")
    return Estimate(None, "", fault, f"{REFUSED}, or it never starts" if fault.startswith(_UNCLEAR) else REFUSED)


class Advisor:
    """Advises on launches. Every method may be called from any thread, and may take seconds.

    Args:
        client: runs ``sbatch --test-only``.
        cluster: the partitions, nodes and limits.
        session: the session part of handles.
        interval: seconds between two questions about the queue.
    """

    def __init__(self, client: Client, cluster: Cluster, session: str, interval: float) -> None:
        self._client = client
        self._cluster = cluster
        self._session = session
        seconds = max(_START_KEPT_S, interval)
        self._intervals = Intervals(seconds, seconds)

    def findings(self, app: AppDef, opts: SlurmOpts) -> Iterator[Finding]:
        """Yield the limits that sbatch would accept and never start, faults on the nodes, and the estimate."""
        yield from launch_findings(app, opts)
        try:
            estimate = self._estimate(app, opts, {})
        except BackendUnavailableError as error:
            yield Finding("warning", str(error), "limits and the start are not checked")
            return
        except SchedulerError as error:
            yield Finding("error", str(error), "change what sbatch rejects")
            return
        estimate = estimate or Estimate(None)
        asked = asked_for(app, opts)
        default = next(iter(self._cluster.partition_names()), "")
        limits = [*exceeded_limits(replace(asked, partition=asked.partition or default), self._cluster)]
        if estimate.verdict == REFUSED:
            yield Finding("error", estimate.fault, REFUSED)
        elif estimate.fault and not limits:
            never = "it may never start, or wait for jobs without a time limit"
            yield Finding("warning", estimate.fault, never if estimate.verdict == PENDS else estimate.verdict)
        for limit in limits:
            yield Finding("warning", limit.what, f"{limit.verdict or estimate.verdict}: {limit.advice}")
        # It does not know the limits of accounts and QOS.
        if estimate.start is not None and not limits:
            yield Finding("ok", f"Slurm would start it at {clock(estimate.start)} on {estimate.nodes}")

    def partitions(self, app: AppDef, opts: SlurmOpts) -> list[PartitionStatus]:
        """Return the partitions, that which is asked for first, then the default one.

        Raises:
            SchedulerError: Slurm cannot be asked.
        """
        asked = asked_for(app, opts)
        first = asked.partition.split(",")[0]
        estimates_left, places = _MAX_ESTIMATES, []
        for partition in sorted(self._cluster.partitions(), key=lambda partition: partition.name != first):
            estimate = Estimate(None, fault=_partition_fault(partition, asked))
            if not estimate.fault and estimates_left:
                estimates_left -= 1
                estimate = self._estimate_or_fault(app, opts, {"partition": partition.name}) or estimate
            pool = pool_of(partition.name, self._cluster.nodes(partition.name))
            gpus_free, gpus = count_whole(pool.gpus)
            places.append(
                PartitionStatus(
                    cfg={"partition": partition.name},
                    name=partition.name,
                    free=pool.nodes_free,
                    nodes=partition.nodes,
                    gpus_free=gpus_free,
                    gpus=gpus,
                    limit=partition.max_time,
                    start=estimate.start,
                    fault=estimate.fault,
                )
            )
        return places

    def estimate_start(self, partition: str) -> StartEstimate:
        """Return when a job of one task with Slurm's defaults would start in a partition.

        One session on this host asks, at most every 30 seconds.

        Raises:
            BackendUnavailableError: Slurm cannot be reached.
        """

        def ask() -> str:
            answer = self._client.run(["sbatch", *_SMALL_JOB, "--partition", partition], env=_estimate_environment())
            return f"{answer.code}\n{answer.err}"

        # Its file keeps the answer.
        name = hashlib.sha256(partition.encode()).hexdigest()[:12]
        answer = SharedAnswer(answers_folder() / f"start-{name}", ask, self._intervals).get()
        code, _, err = answer.text.partition("\n")
        try:
            estimate = parse_estimate(commands.Answer(int(code), "", err)) or Estimate(None, fault=_NO_ESTIMATE)
        except SchedulerError as error:
            return StartEstimate(fault=str(error))
        return StartEstimate(estimate.start, estimate.fault)

    def alternatives(self, job: Job, app: AppDef, opts: SlurmOpts) -> list[Alternative]:
        """Return requests that would start a waiting job sooner, the soonest first, and the job as it is.

        Args:
            job: its record.
            app: the app that launches it again.
            opts: the run options that do.

        Raises:
            SchedulerError: Slurm cannot be asked.
        """
        why, start, fault = reason(with_true_reason(job, self._cluster).reason), expected_start(job), ""
        if why.never:
            fault = why.sentence
        elif start is None and (estimate := self._estimate_or_fault(app, opts, {})) is not None:
            start, fault = estimate.start, estimate.fault
        found = [Alternative({}, start, fault)]
        # A script decides itself what it does with fewer nodes.
        for changes in _changes(self._cluster.partitions(), job, script_of(app.roles) is not None):
            estimate = self._estimate_or_fault(app, opts, changes)
            if estimate is None or estimate.start is None or (start is not None and estimate.start >= start):
                continue
            # The estimate does not know the limits of accounts and QOS.
            if not [*exceeded_limits(_changed(job, changes), self._cluster)]:
                found.append(Alternative(changes, estimate.start))
        return sorted(found, key=lambda item: (item.start is None, item.start or 0.0, len(item.changes)))

    def _estimate(self, app: AppDef, opts: SlurmOpts, changes: Mapping[str, str]) -> Estimate | None:
        """Return the estimate for a request with changed options; None if Slurm has none, as for heterogeneous jobs.

        Raises:
            SchedulerError: sbatch does not take the request, or Slurm cannot be reached.
        """
        changed = SlurmOpts.from_cfg({**dict(opts), **changes})
        request = make_request(app, self._session, changed, self._cluster.tracks_memory)
        # The comment contains a key that differs each time, and so does a script of ours, which has no options in it.
        words = [word for word in request.command[1:] if word != "--parsable" and not word.startswith("--comment=")]
        if ":" in words:
            return None
        answer = self._client.run(
            ["sbatch", "--test-only", *words],
            keep_s=_ESTIMATE_KEPT_S,
            key=("sbatch", *words, request.script if request.launch.get("script") else ""),
            stdin=request.script,
            env=_estimate_environment(),
        )
        return parse_estimate(answer)

    def _estimate_or_fault(self, app: AppDef, opts: SlurmOpts, changes: Mapping[str, str]) -> Estimate | None:
        try:
            return self._estimate(app, opts, changes)
        except SchedulerError as error:
            return Estimate(None, fault=str(error))


def _estimate_environment() -> dict[str, str]:
    return {**commands.submit_environment(), "SLURM_TIME_FORMAT": "%s"}


def _changed(job: Job, changes: Mapping[str, str]) -> Job:
    """Return a job with other run options; fewer nodes have fewer CPUs and GPUs."""
    limit = parse_duration(changes.get("time", "")) or job.limit
    changed = replace(job, partition=changes.get("partition", job.partition), limit=limit)
    if nodes := parse_count(changes.get("nodes", "")):
        gpus = parse_count(parse_tres(job.tres).get("gres/gpu", ""))
        changed = with_size(changed, nodes, job.cpus * nodes // job.nodes, gpus * nodes // job.nodes)
    return changed


def _partition_fault(partition: Partition, asked: Job) -> str:
    """Return why a partition cannot start a launch even with all nodes free; empty if it can."""
    if not partition.is_up:
        return "closed"
    if asked.limit is not None and partition.max_time is not None and asked.limit > partition.max_time:
        return "too short"
    return "too few nodes" if asked.nodes > partition.nodes else ""


def _changes(partitions: list[Partition], asked: Job, is_script: bool) -> Iterator[dict[str, str]]:
    chosen = (asked.partition or next((each.name for each in partitions if each.is_default), "")).split(",")
    others = [each.name for each in partitions if each.name not in chosen and not _partition_fault(each, asked)]
    yield from ({"partition": name} for name in others[: _MAX_ESTIMATES - 2])
    shorter = {}
    if asked.limit is not None and asked.limit >= 2 * _LEAST_TIME_S:
        minutes = asked.limit // 120
        shorter = {"time": f"{minutes // 60}:{minutes % 60:02d}:00"}
        yield shorter
    if is_script and asked.nodes > 1:
        yield {**shorter, "nodes": str(asked.nodes // 2)}
