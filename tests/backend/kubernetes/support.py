"""Replicas of a Volcano job, launched without a scheduler, and their logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.following import Follower
from support.kubernetes_cluster import KubernetesCluster, Object
from support.volcano_jobs import make_job, pods_of, start_job, status_of
from support.waiting import wait_until

from torchx_tui.backends.kube.api_server import ApiServer
from torchx_tui.backends.kubernetes.jobs import Jobs
from torchx_tui.backends.kubernetes.log_stream import KubernetesLogStream
from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO


class Job:
    """One job in a test's namespace.

    Args:
        cluster: where it runs.
        server: how it is asked.
    """

    def __init__(self, cluster: KubernetesCluster, server: ApiServer) -> None:
        self.cluster = cluster
        self.server = server
        self.jobs = Jobs(server, VOLCANO)
        self.scheduler = KubernetesScheduler("test")
        self.name = "job"

    @property
    def app_id(self) -> str:
        return f"{self.cluster.namespace}:{self.name}"

    def start(self, script: str, **options: Any) -> Job:
        """Start it; see `make_job`."""
        start_job(self.cluster, make_job(self.name, script, **options))
        return self

    def python(self, script: str, **options: Any) -> Job:
        return self.start("", image="python:local", command=["python3", "-u", "-c", script], **options)

    def wait(self, *phases: str) -> None:
        """Wait until it has ended."""
        wanted = phases or ("Completed", "Failed", "Aborted")
        wait_until(lambda: self.phase in wanted, f"the job is {' or '.join(wanted)}")

    @property
    def phase(self) -> str:
        return status_of(self.cluster, self.name).get("state", {}).get("phase", "")

    def pods(self) -> list[Object]:
        return pods_of(self.cluster, self.name)

    def wait_until_running(self) -> None:
        wait_until(
            lambda: (pods := self.pods()) and all(pod["status"]["phase"] == "Running" for pod in pods), "its pods run"
        )

    def lines(self, k: int = 0, **options: Any) -> list[str]:
        return list(self.scheduler.log_iter(self.app_id, "worker", k, **options))

    def stream(self, k: int = 0, cursor: Any = None) -> KubernetesLogStream:
        return KubernetesLogStream(self.jobs, self.app_id, "worker", k, cursor)

    def follow(self, k: int = 0) -> Follower:
        return Follower(lambda cursor: self.stream(k, cursor))


@contextmanager
def job_on(cluster: KubernetesCluster) -> Iterator[Job]:
    server = ApiServer()
    job = Job(cluster, server)
    try:
        yield job
    finally:
        job.scheduler.close()
        server.close()
