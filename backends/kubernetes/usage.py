"""What replicas use, by the metrics API (``metrics.k8s.io/v1beta1``), which metrics-server answers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

from cachetools import LRUCache

from ..kube.api_server import ApiError, ApiServer
from ..kube.objects import METADATA, KubernetesObject, checked, dig, items_of, name_of, shape
from ..kube.pod_template import cores
from ..kube.pods import main_container
from ..types import ReplicaUsage
from .jobs import Jobs

_log = logging.getLogger(__name__)
_PATH = "/apis/metrics.k8s.io/v1beta1/namespaces/{}/pods"
# metrics-server asks the nodes every 15 seconds.
_KEPT_S = 15.0
_TIMEOUT_S = 10.0
_MAX_JOBS = 16
_METRICS = shape("metadata", metadata=METADATA, containers=[shape(name=str, usage=dict)])


class _Sample(NamedTuple):
    """The use of containers by the name of their pod and their own, and when it was read, by the monotonic clock."""

    at: float
    usage: Mapping[tuple[str, str], KubernetesObject]


class UsageSampler:
    """Measures the replicas of jobs; every method may be called from any thread.

    Args:
        server: the server.
    """

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._samples: LRUCache[str, _Sample] = LRUCache(_MAX_JOBS)
        # Namespaces in which the server does not measure, or may not tell.
        self._refused: set[str] = set()
        self._lock = threading.Lock()

    def sample(self, jobs: Jobs, app_id: str) -> list[ReplicaUsage]:
        """Return what each running replica uses, at most `_KEPT_S` old; empty where the server does not tell.

        Raises:
            JobNotFoundError: there is no such job.
            SchedulerError: the server did not answer.
        """
        now = time.monotonic()
        found = jobs.snapshot(app_id, now - _KEPT_S)
        job = found.existing(app_id)
        namespace = job["metadata"]["namespace"]
        if found.has_ended or namespace in self._refused:
            return []
        with self._lock:
            sample = self._samples.get(app_id)
        if sample is None or now - sample.at > _KEPT_S:
            sample = _Sample(now, self._read(namespace, jobs.kind.pods_selector(job)))
            with self._lock:
                self._samples[app_id] = sample
        usages = []
        for replica, pod in found.pods.items():
            own = main_container(pod)
            used = sample.usage.get((name_of(pod), own))
            if used is None:
                continue
            containers = dig(pod, "spec", "containers") or []
            limits = next((dig(one, "resources", "limits") or {} for one in containers if one["name"] == own), {})
            memory, most = cores(used.get("memory")), cores(limits.get("memory"))
            usages.append(
                ReplicaUsage(
                    replica.role,
                    replica.number,
                    cpu=cores(used.get("cpu")),
                    cpu_total=cores(limits.get("cpu")),
                    memory=None if memory is None else int(memory),
                    memory_total=None if most is None else int(most),
                )
            )
        return usages

    def _read(self, namespace: str, selector: str) -> dict[tuple[str, str], KubernetesObject]:
        path = _PATH.format(namespace)
        try:
            answer = self._server.request("GET", path, params={"labelSelector": selector}, timeout=_TIMEOUT_S)
        except ApiError as error:
            if error.status not in (403, 404):
                raise
            with self._lock:
                if namespace not in self._refused:
                    self._refused.add(namespace)
                    hint = "metrics-server is not installed" if error.status == 404 else str(error)
                    _log.warning("what replicas in %s use is not shown: %s", namespace, hint)
            return {}
        pods = [pod for item in items_of(answer) if (pod := checked(item, _METRICS)) is not None]
        return {
            (name_of(pod), str(one.get("name"))): one.get("usage") or {}
            for pod in pods
            for one in pod.get("containers") or []
        }
