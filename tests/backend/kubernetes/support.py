"""Replicas of a Volcano job, launched without a scheduler, and their logs."""

from contextlib import contextmanager

from support.following import Follower
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

    def __init__(self, cluster, server):
        self.cluster = cluster
        self.server = server
        self.jobs = Jobs(server, VOLCANO)
        self.scheduler = KubernetesScheduler("test")
        self.name = "job"

    @property
    def app_id(self):
        return f"{self.cluster.namespace}:{self.name}"

    def start(self, script, **options):
        """Start it; see `make_job`."""
        start_job(self.cluster, make_job(self.name, script, **options))
        return self

    def python(self, script, **options):
        return self.start("", image="python:local", command=["python3", "-u", "-c", script], **options)

    def wait(self, *phases):
        """Wait until it has ended."""
        wanted = phases or ("Completed", "Failed", "Aborted")
        wait_until(lambda: self.phase in wanted, f"the job is {' or '.join(wanted)}")

    @property
    def phase(self):
        return status_of(self.cluster, self.name).get("state", {}).get("phase", "")

    def pods(self):
        return pods_of(self.cluster, self.name)

    def wait_until_running(self):
        wait_until(
            lambda: (pods := self.pods()) and all(pod["status"]["phase"] == "Running" for pod in pods), "its pods run"
        )

    def lines(self, k=0, **options):
        return list(self.scheduler.log_iter(self.app_id, "worker", k, **options))

    def stream(self, k=0, cursor=None):
        return KubernetesLogStream(self.jobs, self.app_id, "worker", k, cursor)

    def follow(self, k=0):
        return Follower(lambda cursor: self.stream(k, cursor))


@contextmanager
def job_on(cluster):
    server = ApiServer()
    job = Job(cluster, server)
    try:
        yield job
    finally:
        job.scheduler.close()
        server.close()
