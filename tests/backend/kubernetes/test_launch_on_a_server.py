"""Launches on a real API server, with real pods: what was asked for runs, and what is missing is said."""

from typing import Any

import pytest
import yaml
from backend.kubernetes.apps import role
from support.kubernetes_cluster import RefusedError
from support.volcano_jobs import status_of
from support.waiting import wait_until

from torchx_tui.backends.kube.api_server import ApiServer
from torchx_tui.backends.kubernetes import labels
from torchx_tui.backends.kubernetes.app_def import read_app_def
from torchx_tui.backends.kubernetes.jobs import Jobs
from torchx_tui.backends.kubernetes.lifecycle import launch
from torchx_tui.backends.kubernetes.preflight import launch_findings
from torchx_tui.backends.kubernetes.request import KubernetesOpts, make_request
from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.backends.kubernetes.volcano.roles import roles_of
from torchx_tui.specs.mounts import BindMount, VolumeMount
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, RetryPolicy
from torchx_tui.specs.status import AppState

# Small machines run these.
SMALL = Resource(cpu=0, gpu=0, memMB=64)


def options(cluster, **cfg):
    given: dict[str, Any] = {"queue": "default", "namespace": cluster.namespace, **cfg}
    return KubernetesOpts(**given)


def request(cluster, *roles, **cfg):
    return make_request(AppDef("job", list(roles)), "mine", options(cluster, **cfg), VOLCANO)


def launched(cluster, *roles):
    """Launch a job, and return it as the server has it."""
    found = Jobs(ApiServer(), VOLCANO).find(launch(ApiServer(), VOLCANO, request(cluster, *roles)))
    assert found is not None
    return found


def test_replicas_find_the_first_one(kubernetes_cluster):
    # Its name has a sign that no variable's can have.
    script = 'test -n "$${${rank0_env}}" && test ${replica_id} = "$$K"'
    one = role("lead-er", num_replicas=2, args=["-c", script], env={"K": "${replica_id}"}, resource=SMALL)
    job = launched(kubernetes_cluster, one, role("other", args=["-c", script], env={"K": "0"}, resource=SMALL))
    name = job["metadata"]["name"]

    def phase():
        return status_of(kubernetes_cluster, name).get("state", {}).get("phase", "")

    wait_until(lambda: phase() in ("Completed", "Failed"), "the end of the job")
    assert phase() == "Completed"


def test_the_server_keeps_what_is_needed_to_launch_it_again(kubernetes_cluster):
    ports, variables = {"tb": 6006}, {"A": "1", "IP": "[FIELD_PATH]status.podIP"}
    mounts = [BindMount("/data", "/x"), VolumeMount("v", "/y")]
    given = [
        role("a", num_replicas=2, resource=SMALL, max_retries=2, retry_policy=RetryPolicy.REPLICA, port_map=ports),
        role("b", num_replicas=2, min_replicas=1, env=variables),
        role("c", max_retries=1, retry_policy=RetryPolicy.ROLE, mounts=mounts),
    ]
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "v"}, "spec": spec}
    kubernetes_cluster.request(
        "POST", f"/api/v1/namespaces/{kubernetes_cluster.namespace}/persistentvolumeclaims", claim
    )
    job = launched(kubernetes_cluster, *given)
    assert float(job["metadata"]["annotations"][labels.SUBMITTED_AT]) > 0
    assert read_app_def(job, []) == AppDef("job", given)
    notes = []
    rebuilt = roles_of(job, notes)
    for one in given:
        one.max_retries, one.retry_policy, one.min_replicas = 0, RetryPolicy.APPLICATION, None
    # No limit and none asked for are the same to Kubernetes.
    given[0].resource = Resource(cpu=-1, gpu=0, memMB=64)
    assert (rebuilt, notes) == (given, ["c: its retries are not launched again"])


def test_the_text_can_be_applied(kubernetes_cluster):
    made = request(kubernetes_cluster, role(env={"HF_TOKEN": "x"}), role("b"))
    path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{kubernetes_cluster.namespace}/jobs?dryRun=All"
    answer = kubernetes_cluster.request("POST", path, yaml.safe_load(str(made)))
    assert answer["metadata"]["name"] == made.resource["metadata"]["name"]


class TestPreflight:
    def found(self, cluster, *roles, **cfg):
        app = AppDef("job", list(roles) or [role(resource=SMALL)])
        return [
            f"{one.level}: {one.what}" for one in launch_findings(ApiServer(), VOLCANO, app, options(cluster, **cfg))
        ]

    def test_what_the_server_has_against_pods(self, kubernetes_cluster):
        twice = role(mounts=[BindMount("/a", "/x"), BindMount("/b", "/x")])
        (said,) = self.found(kubernetes_cluster, role("a"), twice)
        assert said.startswith("warning: worker: spec.containers[0].volumeMounts[2].mountPath: ")
        assert "must be unique" in said

    def test_a_quota(self, kubernetes_cluster):
        path = f"/api/v1/namespaces/{kubernetes_cluster.namespace}/resourcequotas"
        quota = {"metadata": {"name": "small"}, "spec": {"hard": {"limits.memory": "8M"}}}
        kubernetes_cluster.request("POST", path, quota)

        def is_enforced():
            try:
                found = kubernetes_cluster.request("GET", f"{path}/small")
            except RefusedError:
                return False
            return bool((found.get("status") or {}).get("hard"))

        wait_until(is_enforced, "the quota")
        (said,) = self.found(kubernetes_cluster)
        assert said.startswith("warning: worker: the quota small of the namespace does not allow it")
        assert "limits.memory=8M is the limit" in said


@pytest.mark.parametrize("kind", ["job", "auto"])
def test_apps_without_volcano(kubernetes_cluster, kind):
    cfg = {"namespace": kubernetes_cluster.namespace, "kind": kind, **({"queue": "default"} if kind == "auto" else {})}
    scheduler = KubernetesScheduler("mine", namespace=kubernetes_cluster.namespace)
    app = AppDef("job", [role(args=["-c", "echo rank ${replica_id} of ${app_id}"], resource=SMALL)])
    try:
        app_id = scheduler.schedule(scheduler.submit_dryrun(app, cfg))
        wait_until(lambda: scheduler.has_ended(app_id), "its end")
        described: Any = scheduler.describe(app_id)
        assert (described.state, described.name, described.roles[0].image) == (
            AppState.SUCCEEDED,
            "job",
            "busybox:local",
        )
        assert described.cfg["namespace"] == kubernetes_cluster.namespace
        (line,) = scheduler.log_iter(app_id, "worker", 0)
        assert line.strip() == f"rank 0 of {app_id.rpartition(':')[2]}"
        (row,) = scheduler.list()
        assert (row.app_id, row.foreign) == (app_id, False)
        assert app_id.count(":") == (2 if kind == "job" else 1)
        scheduler.delete(app_id)
        wait_until(lambda: scheduler.describe(app_id) is None, "it is gone")
    finally:
        scheduler.close()


def test_app_of_several_jobs_is_one(kubernetes_cluster):
    cfg = {"namespace": kubernetes_cluster.namespace, "kind": "job"}
    scheduler = KubernetesScheduler("mine", namespace=kubernetes_cluster.namespace)
    roles = [
        # Old servers do not number several replicas of a role.
        role("trainer", args=["-c", "sleep 600"], resource=SMALL),
        role("reader", args=["-c", "echo read"], resource=SMALL),
    ]
    services = f"/api/v1/namespaces/{kubernetes_cluster.namespace}/services"

    def state():
        described = scheduler.describe(app_id)
        return described and described.state

    try:
        app_id = scheduler.schedule(scheduler.submit_dryrun(AppDef("job", roles), cfg))
        name = app_id.rpartition(":")[2]
        (service,) = kubernetes_cluster.request("GET", services)["items"]
        assert (service["metadata"]["name"], service["spec"]["clusterIP"]) == (name, "None")

        def reader():
            described: Any = scheduler.describe(app_id)
            return next(one.replicas[0] for one in described.roles_statuses if one.role == "reader")

        wait_until(lambda: reader().state is AppState.SUCCEEDED, "one role has ended")
        wait_until(lambda: state() is AppState.RUNNING, "the other one runs")
        (row,) = scheduler.list()
        assert (row.app_id, row.state, row.replicas_wanted, row.replicas_succeeded) == (app_id, AppState.RUNNING, 2, 1)
        assert list(scheduler.log_iter(app_id, "reader", 0)) == ["read\n"]
        scheduler.cancel(app_id)
        wait_until(lambda: state() is AppState.CANCELLED, "it is cancelled")
        scheduler.delete(app_id)
        wait_until(lambda: not kubernetes_cluster.request("GET", services)["items"], "its Service is gone")
    finally:
        scheduler.close()
