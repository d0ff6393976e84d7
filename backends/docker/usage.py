"""CPU and memory of an app's replicas, computed as ``docker stats`` does."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, NamedTuple

from ...logs.source.log_times import nanoseconds_of
from ...specs.errors import JobNotFoundError
from ..docker_engine.client import Engine
from ..types import ReplicaUsage
from .containers import ContainerSummary, find_containers, replica_number, role_name

if TYPE_CHECKING:
    import docker

# Engines answer within a second: one request after the other would take a second for each container.
_MAX_THREADS = 64
# Containers that have not answered by then are left out.
_TIMEOUT_S = 10.0
# Samples that are older are forgotten.
_KEPT_S = 120.0


class _Sample(NamedTuple):
    cpu: int
    """Nanoseconds of CPU time since the container's start."""
    at: int
    """Nanoseconds since the epoch."""
    taken: float


class UsageSampler:
    """Measures apps repeatedly. The first sample of an app has no CPU use, which is the difference of two samples.

    An engine takes two seconds to measure CPU use itself; therefore it is asked for one sample at a time.

    Args:
        engine: the engine.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._before: dict[str, _Sample] = {}
        self._cores: dict[str, float] = {}
        self._idle: list[docker.DockerClient] = []
        self._lock = threading.Lock()

    def sample(self, app_id: str) -> list[ReplicaUsage]:
        """Measure each running replica.

        Raises:
            JobNotFoundError: there is no such app.
            BackendUnavailableError: the engine cannot be reached.
        """
        containers = find_containers(self._engine, app_id)
        if not containers:
            raise JobNotFoundError(app_id, "local_docker")
        running = [container for container in containers if container.get("State") in ("running", "paused")]
        answers = self._measure_all([container["Id"] for container in running])
        usages = [
            self._usage(container, *answers[container["Id"]]) for container in running if container["Id"] in answers
        ]
        self._forget()
        return usages

    def _measure_all(self, ids: list[str]) -> dict[str, tuple[dict[str, Any], float]]:
        """Return the statistics and the cores of each container that answers in time."""
        if not ids:
            return {}
        pool = ThreadPoolExecutor(min(_MAX_THREADS, len(ids)), thread_name_prefix="docker-usage")
        answers = {container_id: pool.submit(self._measure, container_id) for container_id in ids}
        done, _ = wait(answers.values(), _TIMEOUT_S)
        pool.shutdown(wait=False, cancel_futures=True)
        # A container may have ended; that the engine is away is shown by the list.
        return {key: answer.result() for key, answer in answers.items() if answer in done and not answer.exception()}

    def _measure(self, container_id: str) -> tuple[dict[str, Any], float]:
        with self._lock:
            client = self._idle.pop() if self._idle else None
        client = client or self._engine.new_client(_TIMEOUT_S)
        try:
            stats = client.api.stats(container_id, stream=False, one_shot=True)
            return stats, self._limit(client, container_id)
        finally:
            # The SDK keeps a connection for each container. Making a client takes longer than connecting it.
            client.close()
            with self._lock:
                self._idle.append(client)

    def _limit(self, client: docker.DockerClient, container: str) -> float:
        """Return the number of cores that a container may use; 0 for all."""
        if container not in self._cores:
            config = client.api.inspect_container(container)["HostConfig"]
            quota = (config.get("CpuQuota") or 0) / (config.get("CpuPeriod") or 100_000)
            self._cores[container] = (config.get("NanoCpus") or 0) / 1e9 or max(0.0, quota)
        return self._cores[container]

    def _usage(self, container: ContainerSummary, stats: dict[str, Any], limit: float) -> ReplicaUsage:
        cpu = stats.get("cpu_stats") or {}
        used = int((cpu.get("cpu_usage") or {}).get("total_usage") or 0)
        sample = _Sample(used, nanoseconds_of(stats["read"]), time.monotonic())
        with self._lock:
            before, self._before[container["Id"]] = self._before.get(container["Id"]), sample
        passed = sample.at - before.at if before else 0
        cores = (sample.cpu - before.cpu) / passed if before and passed > 0 and sample.cpu >= before.cpu else None
        memory = stats.get("memory_stats") or {}
        online = cpu.get("online_cpus") or len((cpu.get("cpu_usage") or {}).get("percpu_usage") or ()) or None
        return ReplicaUsage(
            role_name(container),
            replica_number(container),
            cpu=cores,
            cpu_total=limit or online,
            memory=resident_bytes(memory),
            memory_total=memory.get("limit") or None,
        )

    def _forget(self) -> None:
        with self._lock:
            old = [key for key, sample in self._before.items() if time.monotonic() - sample.taken > _KEPT_S]
            for key in old:
                del self._before[key]
                self._cores.pop(key, None)


def resident_bytes(memory: dict[str, Any]) -> int | None:
    """Return the memory in use without cached files; None if unknown.

    Args:
        memory: ``memory_stats`` of the engine's answer, from either version of control groups.
    """
    usage = memory.get("usage")
    if usage is None:
        return None
    stats = memory.get("stats") or {}
    # Version 1 counts the container's children in another figure than its own.
    cached = stats.get("total_inactive_file", stats.get("inactive_file", 0))
    return usage - cached if cached < usage else usage
