"""Advice before a launch and while a job waits: limits, estimates, partitions with room, what would start sooner.

Estimates are those of ``sbatch --test-only``. It knows nothing of limits of accounts and QOS, and of dependencies:
those are looked at beside it. For a job that never starts it names a date centuries ahead, but also for jobs that start
at once while others without a time limit run (seen with 22.05).
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from ...logs.text.sanitize import plain
from ...specs.batch_script import script_of
from ...specs.errors import BackendUnavailableError, SchedulerError
from ...specs.roles import AppDef
from ..types import Alternative, Finding, PartitionStatus
from . import commands
from .cluster import Cluster, Partition
from .facts import Facts
from .jobs import MOST_AHEAD_S, Job, parse_count, parse_duration, parse_tres
from .limits import PENDS, REFUSED, Asked, asked_for, limit_findings
from .options import SlurmOpts
from .reasons import reason
from .request import SlurmRequest, launch_findings, make_request
from .waiting import clock, expected_start, with_true_reason

# Each estimate is a run of the scheduler.
_MOST_ESTIMATES = 6
_LEAST_TIME_S = 120
# From 25.05 on something may stand behind the time: a letter, ` on cluster NAME`.
_TOLD = re.compile(r"to start at (?P<at>\d+)\b.*? using \d+ processors on nodes (?P<nodes>\S+) in partition ")
_REFUSED = re.compile(r"^(?:sbatch: error: )?allocation failure: ", re.MULTILINE)
# A question is a run of the scheduler, and its answer holds for a while.
_KEPT_S = 60.0
_NO_ESTIMATE = "Slurm gives no estimate of the start"
# Of these sbatch accepts some jobs, which then never start; of all others it refuses them, too.
_UNCLEAR = ("Requested node configuration ", "Requested partition configuration ", "Required node ")
_MOST_KEPT = 200


class Estimate(NamedTuple):
    """Slurm's estimate for a request.

    Attributes:
        start: when it would start, in seconds since the epoch; None where it would not.
        nodes: the nodes that it would get.
        fault: why it would not start, empty where it would.
    """

    start: float | None
    nodes: str = ""
    fault: str = ""


class Estimates:
    """Asks, and keeps the answers for a minute; every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, ...], tuple[float, Estimate]] = {}

    def ask(self, request: SlurmRequest) -> Estimate | None:
        """Return the estimate for a request; None where Slurm has none, as for heterogeneous jobs.

        Raises:
            BackendUnavailableError: Slurm cannot be asked.
        """
        # The comment has a key that is another each time, and so has a script of ours, which has no options in it.
        words = [word for word in request.command[1:] if word != "--parsable" and not word.startswith("--comment=")]
        if ":" in words:
            return None
        key, now = (*words, request.script if request.launch.get("script") else ""), time.monotonic()
        with self._lock:
            at, kept = self._kept.get(key, (0.0, None))
            if kept is not None and now - at < _KEPT_S:
                return kept
        env = {**commands.submit_environment(), "SLURM_TIME_FORMAT": "%s"}
        answer = commands.run(["sbatch", "--test-only", *words], stdin=request.script, env=env)
        found = parse_estimate(answer)
        if found is not None:
            with self._lock:
                if len(self._kept) >= _MOST_KEPT:
                    self._kept.clear()
                self._kept[key] = now, found
        return found


def parse_estimate(answer: commands.Answer) -> Estimate | None:
    """Parse an answer of ``sbatch --test-only``; return None if it has no estimate.

    Raises:
        SchedulerError: sbatch does not take the request, or Slurm cannot be reached.
    """
    if answer.code == 0:
        found = _TOLD.search(answer.err)
        if found is None:
            return None
        start = float(found["at"])
        if start > time.time() + MOST_AHEAD_S:
            return Estimate(None, fault=_NO_ESTIMATE)
        return Estimate(start, plain(found["nodes"]))
    if _REFUSED.search(answer.err):
        return Estimate(None, fault=commands.error_text("sbatch", answer).replace("allocation failure: ", ""))
    raise commands.failure("sbatch", answer)


class Advisor:
    """Looks at launches; every method may be called from any thread, and may take seconds.

    Args:
        asking: how Slurm is asked.
        cluster: the partitions.
        facts: what else is asked.
        session: the session part of handles.
    """

    def __init__(self, asking: commands.Asking, cluster: Cluster, facts: Facts, session: str) -> None:
        self._asking = asking
        self._cluster = cluster
        self._facts = facts
        self._session = session
        self._estimates = Estimates()

    def findings(self, app: AppDef, opts: SlurmOpts) -> Iterator[Finding]:
        """Yield what sbatch would accept and never start, what would go wrong on the nodes, and the estimate."""
        yield from launch_findings(app, opts)
        try:
            estimate = self._estimate(app, opts, {})
        except BackendUnavailableError as error:
            yield Finding("warning", str(error), "limits and the start are not checked")
            return
        except SchedulerError as error:
            yield Finding("error", str(error), "change what sbatch rejects")
            return
        default = next(iter(self._cluster.partition_names()), "")
        verdict = _verdict(estimate)
        limits = [*limit_findings(asked_for(app, opts), self._facts, default)]
        if estimate is not None and (verdict == REFUSED or (estimate.fault and not limits)):
            hint = verdict
            if estimate.fault == _NO_ESTIMATE:
                hint = "it may never start, or wait for jobs without a time limit"
            yield Finding("error" if verdict == REFUSED else "warning", estimate.fault, hint)
        yield from (replace(limit, hint=limit.hint.replace(PENDS, verdict)) for limit in limits)
        # It does not know the limits of accounts and QOS.
        if estimate is not None and estimate.start is not None and not limits:
            yield Finding("ok", f"Slurm would start it at {clock(estimate.start)} on {estimate.nodes}")

    def partitions(self, app: AppDef, opts: SlurmOpts) -> list[PartitionStatus]:
        """Return the partitions, that which is asked for first, then the default one.

        Raises:
            SchedulerError: Slurm cannot be asked.
        """
        asked = asked_for(app, opts)
        first = asked.partition.split(",")[0]
        left, places = _MOST_ESTIMATES, []
        for partition in sorted(self._cluster.partitions(), key=lambda partition: partition.name != first):
            fault, estimate = _partition_fault(partition, asked), None
            if not fault and left:
                left -= 1
                estimate = self._estimate_or_fault(app, opts, {"partition": partition.name})
            there = self._facts.nodes(partition.name)
            usable = [node for node in there if node.is_usable]
            places.append(
                PartitionStatus(
                    cfg={"partition": partition.name},
                    name=partition.name,
                    free=sum(node.idle == node.cpus for node in usable),
                    nodes=partition.nodes,
                    gpus_free=sum(node.gpus - node.gpus_used for node in usable),
                    gpus=sum(node.gpus for node in there),
                    limit=partition.max_time,
                    start=estimate.start if estimate else None,
                    fault=fault or (estimate.fault if estimate else ""),
                )
            )
        return places

    def alternatives(self, job: Job, app: AppDef, opts: SlurmOpts) -> list[Alternative]:
        """Return other requests that would start a waiting job sooner, the soonest first, and the job as it is.

        Args:
            job: its record.
            app: the app that launches it again.
            opts: the run options that do.

        Raises:
            SchedulerError: Slurm cannot be asked.
        """
        asked = Asked(job.partition, job.account, job.qos, job.limit, job.nodes, job.cpus, _gpus(job))
        why, start, fault = reason(with_true_reason(job, self._facts).reason), expected_start(job), ""
        if why.never:
            fault = why.sentence
        elif start is None and (estimate := self._estimate_or_fault(app, opts, {})) is not None:
            start, fault = estimate.start, estimate.fault
        found = [Alternative({}, start, fault)]
        # A script decides itself what it does with fewer nodes.
        for changes in _changes(self._cluster.partitions(), asked, script_of(app.roles) is not None):
            estimate = self._estimate_or_fault(app, opts, changes)
            if estimate is None or estimate.start is None or (start is not None and estimate.start >= start):
                continue
            # The estimate does not know the limits of accounts and QOS.
            if not [*limit_findings(_changed(asked, changes), self._facts, "")]:
                found.append(Alternative(changes, estimate.start))
        return sorted(found, key=lambda item: (item.start is None, item.start or 0.0, len(item.changes)))

    def _estimate(self, app: AppDef, opts: SlurmOpts, changes: Mapping[str, str]) -> Estimate | None:
        changed = SlurmOpts.from_cfg({**dict(opts), **changes})
        request = make_request(app, self._session, changed, self._cluster.tracks_memory)
        return self._asking.guard("sbatch", lambda: self._estimates.ask(request))

    def _estimate_or_fault(self, app: AppDef, opts: SlurmOpts, changes: Mapping[str, str]) -> Estimate | None:
        try:
            return self._estimate(app, opts, changes)
        except SchedulerError as error:
            return Estimate(None, fault=str(error))


def _verdict(estimate: Estimate | None) -> str:
    """Return what becomes of a launch that is over a limit, by what sbatch says of it."""
    if estimate is None or not estimate.fault or estimate.fault == _NO_ESTIMATE:
        return PENDS
    return f"{REFUSED}, or it never starts" if estimate.fault.startswith(_UNCLEAR) else REFUSED


def _gpus(job: Job) -> int:
    return parse_count(parse_tres(job.tres).get("gres/gpu", ""))


def _changed(asked: Asked, changes: Mapping[str, str]) -> Asked:
    """Return what a request asks for with other run options; fewer nodes have fewer CPUs and GPUs."""
    nodes = parse_count(changes.get("nodes", "")) or asked.nodes
    share = nodes / max(1, asked.nodes)
    return asked._replace(
        partition=changes.get("partition", asked.partition),
        time=parse_duration(changes.get("time", "")) or asked.time,
        nodes=nodes,
        cpus=int(asked.cpus * share),
        gpus=int(asked.gpus * share),
    )


def _partition_fault(partition: Partition, asked: Asked) -> str:
    """Return why a partition cannot start a launch even with all nodes free; empty if it can."""
    if not partition.is_up:
        return "closed"
    if asked.time is not None and partition.max_time is not None and asked.time > partition.max_time:
        return "too short"
    return "too few nodes" if asked.nodes > partition.nodes else ""


def _changes(partitions: list[Partition], asked: Asked, is_script: bool) -> Iterator[dict[str, str]]:
    chosen = (asked.partition or next((each.name for each in partitions if each.is_default), "")).split(",")
    others = [each.name for each in partitions if each.name not in chosen and not _partition_fault(each, asked)]
    yield from ({"partition": name} for name in others[: _MOST_ESTIMATES - 2])
    shorter = {}
    if asked.time is not None and asked.time >= 2 * _LEAST_TIME_S:
        minutes = asked.time // 120
        shorter = {"time": f"{minutes // 60}:{minutes % 60:02d}:00"}
        yield shorter
    if is_script and asked.nodes > 1:
        yield {**shorter, "nodes": str(asked.nodes // 2)}
