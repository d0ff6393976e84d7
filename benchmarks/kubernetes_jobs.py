"""Kubernetes: what a tick costs with 10,000 jobs of two kinds in a namespace, a look at 64 replicas, a job that waits.

Requests, bytes and milliseconds through a proxy that counts, beside TorchX's own scheduler where that is installed. The
API server is one of its own, without a node: jobs are made through the API and have no pods, but for the one that is
looked at. Budget: a request for each page of 500 of a kind and one for the kinds, none while a watch holds, at most
three for the job that is looked at, and for one that waits, with its log, only its events after 10, 20 and 40 seconds.
"""

from __future__ import annotations

import importlib
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.api_proxy import ApiProxy, api_proxy
from support.kubernetes_cluster import OwnCluster, private_cluster
from support.services import NoServiceError
from support.volcano_jobs import make_job, start_job

from benchmarks._budget import judged
from benchmarks._sizes import scaled
from torchx_tui.backends.api import Stream
from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler

JOBS = scaled(10_000, 20)
REPLICAS = scaled(64, 2)
ROUNDS = scaled(5, 1)
WATCHED_S = scaled(60, 2)
PATIENCE_SECONDS = 120.0

Row = tuple[str, str]


def fill(cluster: OwnCluster, count: int) -> float:
    """Make jobs without pods; return the seconds that it took."""
    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        makers: list[Callable[[OwnCluster, Any], object]] = [start_job, start_plain_job] * (count // 2)
        made = [pool.submit(make, cluster, make_job(f"job-{number}")) for number, make in enumerate(makers)]
        for done in made:
            done.result()
    return time.monotonic() - began


def start_plain_job(cluster: OwnCluster, volcano_job: dict[str, Any]) -> None:
    """Make a Job of Kubernetes with the name and the pods of one of Volcano."""
    template = volcano_job["spec"]["tasks"][0]["template"]
    template = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
    job = {"metadata": volcano_job["metadata"], "spec": {"completions": 2, "parallelism": 2, "template": template}}
    cluster.request("POST", f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs", job)


def measured(proxy: ApiProxy, act: Callable[[], object], rounds: int) -> tuple[int, float, float]:
    """Return how many requests, megabytes and milliseconds something takes: of several rounds the median time."""
    seconds = []
    for _ in range(rounds):
        proxy.forget()
        began = time.monotonic()
        act()
        seconds.append(time.monotonic() - began)
    return len(proxy.asked), proxy.received / 1e6, statistics.median(seconds) * 1000


def words(found: tuple[int, float, float]) -> str:
    """Return a measurement as a person reads it."""
    requests, megabytes, milliseconds = found
    return f"{requests} requests, {megabytes:.1f} MB, {milliseconds:,.0f} ms"


def run() -> list[Row]:
    """Return the figures."""
    try:
        with private_cluster() as cluster, tempfile.TemporaryDirectory() as folder:
            return _run(cluster, Path(folder))
    except NoServiceError as error:
        return [("Kubernetes", f"not measured: {error}")]


def _run(cluster: OwnCluster, folder: Path) -> list[Row]:
    seconds = fill(cluster, JOBS)
    with api_proxy(cluster, folder) as proxy:
        os.environ["KUBECONFIG"] = str(proxy.kubeconfig)
        return [(f"{JOBS} jobs made", f"{seconds:.0f} s"), *_ours(cluster, proxy), *_torchx(proxy)]


def _ours(cluster: OwnCluster, proxy: ApiProxy) -> list[Row]:
    scheduler = KubernetesScheduler("torchx", timeout=60)
    try:
        first = measured(proxy, scheduler.list, 3)
        # The kinds, the pages of Volcano's jobs and of Jobs, and CronJobs.
        most = 2 + 2 * -(-JOBS // 1000)
        scheduler.subscribe(lambda: None)
        scheduler.list()
        _await_watch(proxy)
        held = measured(proxy, scheduler.list, ROUNDS)
        proxy.forget()
        app_id = start_job(cluster, make_job("newest"))
        _wait(lambda: any(row.app_id == app_id for row in scheduler.list()))
        change = len(proxy.asked), proxy.received / 1e6, 0.0
        _start_many(cluster)
        look = measured(proxy, lambda: scheduler.describe("default:many"), ROUNDS)
        waiting = _look_at_a_waiting_job(scheduler, app_id, proxy)
    finally:
        scheduler.close()
    return [
        ("list: first tick, requests", judged(first[0], most, "")),
        ("list: first tick", words(first)),
        ("list: a tick while a watch holds, requests", judged(held[0], 0, "")),
        ("list: a tick while a watch holds", words(held)),
        ("list: one job more, by the watch", f"{change[0]} requests, {change[1] * 1000:.1f} KB"),
        (f"describe: {REPLICAS} replicas, requests", judged(look[0], 3, "")),
        (f"describe: {REPLICAS} replicas", words(look)),
        (f"a job that waits, and its log: requests in {WATCHED_S} s", judged(waiting, 8, "")),
    ]


def _look_at_a_waiting_job(scheduler: KubernetesScheduler, app_id: str, proxy: ApiProxy) -> int:
    """Describe a job each second, with the log of a replica open; return the requests after the first ones."""
    described = scheduler.describe(app_id)
    assert described is not None
    role = described.roles_statuses[0].role
    log = scheduler.log_stream(app_id, role, 0, Stream.COMBINED)
    reader = threading.Thread(target=lambda: list(log), daemon=True)
    reader.start()
    time.sleep(1)
    proxy.forget()
    for _ in range(WATCHED_S):
        scheduler.describe(app_id)
        time.sleep(1)
    requests = len(proxy.asked)
    log.close()
    reader.join(PATIENCE_SECONDS)
    return requests


def _torchx(proxy: ApiProxy) -> list[Row]:
    try:
        module = importlib.import_module("torchx.schedulers.kubernetes_scheduler")
    except ImportError:
        return [("TorchX", "not installed here: not measured")]
    from kubernetes import client, config

    made = client.Configuration()
    config.load_kube_config(str(proxy.kubeconfig), client_configuration=made)
    scheduler: Any = module.KubernetesScheduler("torchx", client=client.ApiClient(made))
    listed = measured(proxy, lambda: scheduler.list({"namespace": "default"}), 3)
    looked = measured(proxy, lambda: scheduler.describe("default:many"), ROUNDS)
    return [
        ("list: TorchX, each time", words(listed)),
        (f"describe: TorchX, {REPLICAS} replicas", words(looked)),
    ]


def _start_many(cluster: OwnCluster) -> None:
    """Start the job that is looked at, by the controllers; the jobs without pods would get theirs as well."""
    job = make_job("many", replicas=REPLICAS)
    start_job(cluster, job)
    found = cluster.request("GET", "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/many")
    labels = {task["name"]: task["template"]["metadata"]["labels"] for task in job["spec"]["tasks"]}
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "many", "uid": found["metadata"]["uid"]}
    for name, of_template in labels.items():
        pod = {
            "metadata": {
                "name": f"many-{name}-0",
                "labels": {**of_template, "volcano.sh/job-name": "many", "volcano.sh/task-spec": name},
                "ownerReferences": [owner],
            },
            "spec": {"containers": [{"name": name, "image": "busybox:local"}]},
        }
        cluster.request("POST", "/api/v1/namespaces/default/pods", pod)
    counts = {name: {"phase": {"Running": 1}} for name in labels}
    found["status"] = {
        "state": {"phase": "Running", "lastTransitionTime": "2026-11-21T10:00:00Z"},
        "running": REPLICAS,
        "taskStatusCount": counts,
    }
    cluster.request("PUT", "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/many/status", found)


def _await_watch(proxy: ApiProxy) -> None:
    _wait(lambda: proxy.requests(lambda asked: asked.is_watch) and proxy.open_answers())


def _wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("it did not come about")
        time.sleep(0.02)
