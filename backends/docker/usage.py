"""What the replicas of an app use, as ``docker stats`` reckons it."""

from __future__ import annotations

import logging
import queue
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ...logs.source.log_times import nanoseconds_of
from ...specs.errors import JobNotFoundError
from ..docker_engine.client import Engine
from ..types import ReplicaUsage
from .containers import ContainerSummary, find_containers, replica_number, role_name

if TYPE_CHECKING:
    import docker

_log = logging.getLogger(__name__)

# So many containers are asked about at once. Engines answer with their next look at a container, within a second: who
# asks about one after the other waits a second for each.
_MOST_THREADS = 64
# Seconds that one sample may take at the most; what is not there by then is left out.
_TIMEOUT_S = 10.0
# What was not sampled for so long (s) is forgotten.
_KEPT_S = 120.0


class _Sample(NamedTuple):
    cpu: int
    """Nanoseconds of CPU time since the container's start."""
    at: int
    """Nanoseconds since the epoch."""
    taken: float


class UsageSampler:
    """Measures apps again and again; the first sample of an app knows no CPU use, which is one over time.

    An engine asked for the CPU use itself takes two seconds for it: it is asked for one sample, and the one before is
    kept here.

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
        """Measure what each running replica uses now.

        Raises:
            JobNotFoundError: there is no such app.
            BackendUnavailableError: the engine cannot be reached.
        """
        containers = find_containers(self._engine, app_id)
        if not containers:
            raise JobNotFoundError(app_id, "local_docker")
        running = [container for container in containers if container.get("State") in ("running", "paused")]
        answers = self._ask_all([container["Id"] for container in running])
        usages = [
            self._usage(container, *answers[container["Id"]]) for container in running if container["Id"] in answers
        ]
        self._forget()
        return usages

    def _ask_all(self, ids: list[str]) -> dict[str, tuple[dict[str, Any], float]]:
        """Ask for the statistics of each container, and for the number of cores that it may use."""
        left: queue.SimpleQueue[str] = queue.SimpleQueue()
        for container_id in ids:
            left.put(container_id)
        answers: dict[str, tuple[dict[str, Any], float]] = {}
        threads = [
            threading.Thread(target=self._work, args=(left, answers), name="docker-usage", daemon=True)
            for _ in range(min(_MOST_THREADS, len(ids)))
        ]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + _TIMEOUT_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return dict(answers)

    def _work(self, left: queue.SimpleQueue[str], answers: dict[str, tuple[dict[str, Any], float]]) -> None:
        import docker.errors

        with self._lock:
            client = self._idle.pop() if self._idle else None
        try:
            client = client or self._engine.new_client(_TIMEOUT_S)
            while True:
                container_id = left.get_nowait()
                # A container may have ended meanwhile.
                with suppress(docker.errors.APIError):
                    answers[container_id] = (_stats(client, container_id), self._limit(client, container_id))
        except queue.Empty:
            with self._lock:
                self._idle.append(client)  # type: ignore[arg-type]
        except (docker.errors.DockerException, OSError) as error:
            # That the engine is away is told by who lists.
            _log.debug("what containers use could not be asked: %s", error)
        finally:
            # The SDK keeps a connection for each container asked about. To make a client costs more than to connect it.
            if client is not None:
                client.close()

    def _limit(self, client: docker.DockerClient, container: str) -> float:
        """Return how many cores a container may use; 0 for all."""
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
    """Return the memory in use without what the kernel could drop of cached files; None where that is not known.

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


def _stats(client: docker.DockerClient, container: str) -> dict[str, Any]:
    return client.api.stats(container, stream=False, one_shot=True)
