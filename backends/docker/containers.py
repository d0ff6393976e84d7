"""The containers of an app: found by one request whatever their number, inspected, and what they use."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ...logs.source.log_times import nanoseconds_of
from ...specs import AppState, JobNotFoundError
from ..docker_engine.client import Engine
from ..shared.parallel import parallel_map
from ..shared.replicas import pick_replica
from ..types import ReplicaUsage
from . import labels
from .labels import checked_labels

if TYPE_CHECKING:
    import docker


ContainerDetails = dict[str, Any]


# So many containers are asked about at once. Engines answer with their next look at a container, within a second: who
# asks about one after the other waits a second for each.
_THREADS = 64
# Seconds that one sample may take at the most; what is not there by then is left out.
_TIMEOUT_S = 10.0
# What was not sampled for so long (s) is forgotten.
_KEPT = 120.0


def inspect_all(
    engine: Engine, containers: list[ContainerSummary], app_id: str
) -> list[tuple[ContainerSummary, ContainerDetails]]:
    """Return each container with what its inspection says, its summary brought up to that; those gone are left out."""
    inspected_by_id: dict[str, ContainerDetails] = {}

    def inspect(container: ContainerSummary) -> None:
        with suppress(JobNotFoundError), engine.translate_errors(app_id):
            inspected_by_id[container["Id"]] = engine.client().api.inspect_container(container["Id"])

    for error in parallel_map(inspect, containers):
        raise error
    for inspected in inspected_by_id.values():
        inspected["Config"]["Labels"] = checked_labels(inspected["Config"].get("Labels"))
    return [
        (_as_inspected(container, inspected_by_id[container["Id"]]), inspected_by_id[container["Id"]])
        for container in containers
        if container["Id"] in inspected_by_id
    ]


def seconds_of(text: str | None) -> float | None:
    """Return a time of the engine's, RFC 3339 with nanoseconds, in seconds since the epoch; None for year 1, never."""
    if not text or text.startswith("0001-"):
        return None
    return nanoseconds_of(text) / 1e9


def started_at(inspected: Mapping[str, Any]) -> float | None:
    """Return when a container was last started, None if it never was."""
    return seconds_of(inspected["State"].get("StartedAt"))


def finished_at(inspected: Mapping[str, Any]) -> float | None:
    """Return when a container ended, None while it runs or is about to start again."""
    if inspected["State"].get("Status") not in ("exited", "dead"):
        return None
    return seconds_of(inspected["State"].get("FinishedAt"))


def describe_health(inspected: Mapping[str, Any]) -> str:
    """Describe a failing health check; empty where there is none or all is well."""
    health = inspected["State"].get("Health") or {}
    if health.get("Status") not in ("unhealthy", "starting"):
        return ""
    return f"health check: {health['Status']}, failed {health.get('FailingStreak', 0)} times in a row"


def address(inspected: Mapping[str, Any]) -> str | None:
    """Return a container's address in the app's network, None while it has none."""
    networks = (inspected.get("NetworkSettings") or {}).get("Networks") or {}
    return next((network["IPAddress"] for network in networks.values() if network.get("IPAddress")), None)


def exit_code(inspected: Mapping[str, Any], state: AppState) -> int | None:
    """Return a container's exit code, None while it has not ended."""
    return inspected["State"].get("ExitCode") if state in (AppState.SUCCEEDED, AppState.FAILED) else None


def _as_inspected(container: ContainerSummary, inspected: ContainerDetails) -> ContainerSummary:
    """Return a summary as it would be now: a container may have ended since the list was made."""
    state = inspected["State"]
    if state.get("Status", container.get("State")) == container.get("State"):
        return container
    status = f"Exited ({state.get('ExitCode')})" if state["Status"] == "exited" else ""
    return {**container, "State": state["Status"], "Status": status}


ContainerSummary = dict[str, Any]
"""One container as ``/containers/json`` gives it: Id, Names, Image, Created, State, Status, Labels, Ports..."""


def all_containers(engine: Engine) -> list[ContainerSummary]:
    """Return the containers of every TorchX app, ended ones included, the latest first."""
    return _asked(engine, labels.APP_ID)


def find_containers(engine: Engine, app_id: str) -> list[ContainerSummary]:
    """Return the containers of one app, by role and replica as they were launched; empty when there is no such app."""
    return sort_by_role(_asked(engine, f"{labels.APP_ID}={app_id}"))


def sort_by_role(containers: list[ContainerSummary]) -> list[ContainerSummary]:
    """Return the containers of one app by role and replica, the AppDef's first role first."""
    # The engine gives the latest first; TorchX creates roles in their order, and has no label that tells it.
    order = {role_name(container): -place for place, container in enumerate(containers)}
    for container in containers:
        if index := (container.get("Labels") or {}).get(labels.ROLE_INDEX):
            order[role_name(container)] = int(index)
    return sorted(containers, key=lambda container: (order[role_name(container)], replica_number(container)))


def find_replica(engine: Engine, app_id: str, role: str, k: int) -> ContainerSummary:
    """Return the container of one replica.

    Raises:
        JobNotFoundError: there is no such app.
        ValueError: it has no such role or replica; the message lists those that it has.
    """
    containers = find_containers(engine, app_id)
    if not containers:
        raise JobNotFoundError(app_id, "local_docker")
    roles: dict[str, dict[int, ContainerSummary]] = {}
    for container in containers:
        roles.setdefault(role_name(container), {})[replica_number(container)] = container
    return pick_replica(app_id, roles, role, k)


def role_name(container: ContainerSummary) -> str:
    """Return the role that a container is of; empty where its label is missing."""
    return (container.get("Labels") or {}).get(labels.ROLE_NAME, "")


def replica_number(container: ContainerSummary) -> int:
    """Return which replica of its role a container is."""
    return labels.replica_number(container.get("Labels") or {})


def container_name(container: ContainerSummary) -> str:
    """Return a container's name, its id where it has none."""
    names = container.get("Names") or []
    return names[0].lstrip("/") if names else container["Id"][:12]


def _asked(engine: Engine, label: str) -> list[ContainerSummary]:
    """Return the containers that have a label, their labels checked; those whose app id cannot be one are left out."""
    with engine.translate_errors():
        containers = engine.client().api.containers(all=True, filters={"label": label})
    checked = [{**container, "Labels": labels.checked_labels(container.get("Labels"))} for container in containers]
    return [container for container in checked if labels.APP_ID in container["Labels"]]


_log = logging.getLogger(__name__)


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
            for _ in range(min(_THREADS, len(ids)))
        ]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + _TIMEOUT_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return dict(answers)

    def _work(self, left: queue.SimpleQueue[str], answers: dict[str, tuple[dict[str, Any], float]]) -> None:
        import docker.errors
        import requests

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
        except (docker.errors.DockerException, requests.RequestException, OSError) as error:
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
            old = [key for key, sample in self._before.items() if time.monotonic() - sample.taken > _KEPT]
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
