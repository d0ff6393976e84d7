"""The test cluster is what tests take it for: pods run, Volcano's stand-in does as Volcano."""

from __future__ import annotations

from contextlib import suppress

from support.kubernetes_cluster import RefusedError
from support.volcano_jobs import make_job, pods_of, start_job, status_of
from support.waiting import wait_until


def phase_of(cluster, name):
    return status_of(cluster, name).get("state", {}).get("phase", "")


def wait_for_phase(cluster, name, phase):
    wait_until(lambda: phase_of(cluster, name) == phase, f"{name} is {phase}")
    return status_of(cluster, name)


def test_the_webhooks_defaults_are_there(kubernetes_cluster):
    start_job(kubernetes_cluster, make_job("plain", "true", replicas=2, maxRetry=0))
    wait_until(lambda: status_of(kubernetes_cluster, "plain"), "a status")
    path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{kubernetes_cluster.namespace}/jobs/plain"
    spec = kubernetes_cluster.request("GET", path)["spec"]
    assert (spec["maxRetry"], spec["minAvailable"]) == (3, 2)
    assert [(task["maxRetry"], task["minAvailable"]) for task in spec["tasks"]] == [(3, 1), (3, 1)]


def test_what_is_wrong_with_one_job_stops_no_other(kubernetes_cluster):
    jobs = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{kubernetes_cluster.namespace}/jobs"
    for name, queue in (("early", "nosuch"), ("early-too", "default")):
        start_job(kubernetes_cluster, make_job(name, queue=queue, plugins={"svc": [], "nosuch": ["--x"]}))
        # A client writes what no controller has: the counts are missing.
        job = kubernetes_cluster.request("GET", f"{jobs}/{name}")
        job["status"] = {"state": {"phase": "Running"}}
        with suppress(RefusedError):
            kubernetes_cluster.request("PUT", f"{jobs}/{name}/status", job)
    start_job(kubernetes_cluster, make_job("sound", "true"))
    wait_for_phase(kubernetes_cluster, "sound", "Completed")
    assert phase_of(kubernetes_cluster, "early") == "Running"


def test_a_restarted_task_leaves_the_others_alone(kubernetes_cluster):
    job = make_job("part", "exit 1", replicas=2)
    job["spec"]["tasks"][0]["policies"] = [{"event": "PodFailed", "action": "RestartTask"}]
    job["spec"]["tasks"][1]["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "sleep 3600"]
    start_job(kubernetes_cluster, job)
    wait_until(lambda: status_of(kubernetes_cluster, "part").get("retryCount"), "a restart")
    other = [pod for pod in pods_of(kubernetes_cluster, "part") if "worker-1" in pod["metadata"]["name"]]
    assert other[0]["metadata"]["annotations"]["volcano.sh/job-retry-count"] == "0"
    assert "deletionTimestamp" not in other[0]["metadata"]
