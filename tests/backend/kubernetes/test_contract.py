import pytest
from backend.contract import SchedulerContract
from support.volcano_jobs import pods_of
from support.waiting import wait_until

from torchx_tui.backends.kubernetes.scheduler import create_scheduler


class TestKubernetes(SchedulerContract):
    """On real pods, the list kept by a watch, as in the dashboard."""

    # A node tells some time later that a pod runs, before which its log cannot be read.
    gap = 8.0
    image = "busybox:local"
    # containerd takes it off.
    line_end = "\n"

    @pytest.fixture
    def scheduler(self, kubernetes_cluster):
        self.cluster = kubernetes_cluster
        made = create_scheduler("torchx", namespace=kubernetes_cluster.namespace)
        made.subscribe(lambda: None)
        yield made
        made.close()

    @pytest.fixture
    def cfg(self):
        # What the node keeps for itself is all that is asked for: the machine has few cores.
        return {"queue": "default", "reserved_millicpu": 1000}

    def purge_log(self, scheduler, described):
        name = described.app_id.rpartition(":")[2]
        for pod in pods_of(self.cluster, name):
            path = f"/api/v1/namespaces/{self.cluster.namespace}/pods/{pod['metadata']['name']}?gracePeriodSeconds=1"
            self.cluster.request("DELETE", path)
        wait_until(lambda: not pods_of(self.cluster, name), "the pods' end")
