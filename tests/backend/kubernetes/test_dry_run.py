"""The dry run through the scheduler: with a server and without one, with images that nodes cannot have; and what else
a scheduler asks a server, which answers as it is told to."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
import yaml
from backend.kubernetes.apps import role
from kubernetes.client import ApiClient, Configuration
from support.scripted_server import scripted_server, status
from support.volcano_jobs import make_job

from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler
from torchx_tui.backends.runner import Runner
from torchx_tui.specs import (
    AppDef,
    BackendUnavailableError,
    InvalidRunConfigException,
    JobNotFoundError,
    NotAllowedError,
    Resource,
    Role,
    SchedulerError,
)

DIGEST = "a" * 64


@pytest.fixture
def server():
    with scripted_server() as made:
        yield made


@pytest.fixture
def scheduler(server):
    configuration = Configuration()
    configuration.host = server.url
    made = KubernetesScheduler("mine", ApiClient(configuration))
    yield made
    made.close()


def dry_run(scheduler, *roles, **cfg):
    return scheduler.submit_dryrun(AppDef("job", list(roles) or [role()]), {"queue": "default", **cfg})


def test_the_server_is_asked_once_for_a_dry_run(server, scheduler):
    made = dry_run(scheduler, role(num_replicas=8))
    assert [(one.method, one.params) for one in server.asked] == [("POST", {"dryRun": "All"})]
    assert server.asked[0].body == made.request.resource


def test_the_server_is_not_asked_where_nobody_wants_it(server, scheduler):
    assert "kind: Job" in str(dry_run(scheduler, validate_spec=False))
    assert server.asked == []


def test_without_a_kubeconfig(tmp_path):
    with Runner(journal=Journal(tmp_path)) as runner:
        app = AppDef("job", [role()])
        offline = runner.dryrun(app, "kubernetes", {"queue": "default", "validate_spec": False})
        assert "kind: Job" in str(offline)
        with pytest.raises(BackendUnavailableError, match=r"There is no kubeconfig.*validate_spec=false launches"):
            runner.dryrun(app, "kubernetes", {"queue": "default"})


def test_roles_without_resources_have_no_limits(tmp_path):
    with Runner(journal=Journal(tmp_path)) as runner:
        app = AppDef("job", [Role("r", "i", entrypoint="e")])
        job = runner.dryrun(app, "kubernetes", {"queue": "default", "validate_spec": False}).request.resource
    resources = job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {}, "requests": {}}


def test_images_of_the_local_engine(scheduler):
    app = AppDef("job", [role(image=f"sha256:{DIGEST}")])
    cfg: dict[str, Any] = {"queue": "default", "image_repo": "example.com/x"}
    job = scheduler.submit_dryrun(app, cfg).request
    assert job.images_to_push == {f"sha256:{DIGEST}": ("example.com/x", DIGEST)}
    pod = job.resource["spec"]["tasks"][0]["template"]["spec"]
    assert pod["containers"][0]["image"] == f"example.com/x:{DIGEST}"
    with pytest.raises(InvalidRunConfigException, match="set image_repo"):
        dry_run(scheduler, role(image=f"sha256:{DIGEST}"))


def test_the_journal_knows_the_id_before_the_launch(scheduler):
    made = dry_run(scheduler, namespace="team").request
    assert made.app_id == f"team:{made.resource['metadata']['name']}"


def test_what_a_launch_would_find_depends_on_the_options(server, scheduler):
    for path in ("/apis/batch.volcano.sh/v1alpha1", "/api/v1/namespaces/default"):
        server.answers["GET", path] = 200, {}
    server.answers["GET", "/api/v1/nodes"] = 200, {"items": [{}]}
    app = AppDef("job", [role(image=f"sha256:{DIGEST}", resource=Resource(cpu=1, gpu=1, memMB=64))])

    def found(**cfg):
        return [one.what for one in scheduler.preflight(app, {"queue": "q", **cfg})]

    no_queue = "there is no queue q"
    for _ in range(2):
        assert found(image_repo="example.com/x") == [no_queue, "worker: 1 gpu asked for, no node has any"]
    # A form asks with every letter: the nodes are asked once.
    assert server.paths("GET").count("/api/v1/nodes") == 1
    assert found() == [f"worker: only the local Docker engine has its image sha256:{DIGEST[:12]}", no_queue]


# Beside launches

AT = "/apis/batch.volcano.sh/v1alpha1/namespaces/space/jobs"
FORBIDDEN = 'jobs "job-x" is forbidden: User "alice" cannot {} resource "{}" in API group "batch.volcano.sh"'


def on_server(phase="Running", **metadata):
    made = make_job("job-x")
    kept = {"namespace": "space", "uid": "u1", "managedFields": [{"manager": "kubectl"}], "resourceVersion": "5"}
    made["metadata"] |= {**kept, **metadata}
    return {**made, "status": {"state": {"phase": phase, "reason": "R"}, "conditions": [{"status": "Pending"}]}}


def test_a_job_is_cancelled_by_its_phase(server, scheduler):
    server.answers["GET", f"{AT}/job-x"] = 200, on_server()
    refused = iter([status(409, "Conflict", "it was changed")] * 4)
    server.answers["PUT", f"{AT}/job-x/status"] = lambda asked: next(refused, (200, asked.body))
    scheduler.cancel("space:job-x")
    assert len(server.paths("PUT")) == 5
    written = server.asked[-1].body
    state = written["status"]["state"]
    assert (state["phase"], state["reason"], written["metadata"]["resourceVersion"]) == ("Aborted", "R", "5")
    ended = {"status": "Aborted", "lastTransitionTime": state["lastTransitionTime"]}
    assert written["status"]["conditions"] == [{"status": "Pending"}, ended]
    assert (
        abs(datetime.fromisoformat(ended["lastTransitionTime"].replace("Z", "+00:00")).timestamp() - time.time()) < 600
    )
    for code, tries in ((409, 5), (500, 1)):
        server.asked.clear()
        server.answers["PUT", f"{AT}/job-x/status"] = status(code, "Conflict", "it was changed")
        with pytest.raises(SchedulerError, match="it was changed"):
            scheduler.cancel("space:job-x")
        assert len(server.paths("PUT")) == tries
    # What has ended, and what is not there, is left alone.
    server.asked.clear()
    server.answers["GET", f"{AT}/job-x"] = 200, on_server("Failed")
    scheduler.cancel("space:job-x")
    scheduler.cancel("space:job-y")
    assert server.paths("PUT") == []


def test_a_job_is_deleted_by_its_uid(server, scheduler):
    at = f"{AT}/job-x"
    server.answers["GET", at] = 200, on_server()
    for answer, words in (
        ((200, {}), ""),
        (status(404, "NotFound", "it is gone"), ""),
        (status(409, "Conflict", "the UID does not match"), "space:job-x is another job now"),
        (status(422, "Invalid", "it is odd"), "it is odd"),
    ):
        server.answers["DELETE", at] = answer
        with pytest.raises(SchedulerError, match=words) if words else nullcontext():
            scheduler.delete("space:job-x")
        assert server.asked[-1].body == {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": "u1"},
        }
    server.asked.clear()
    scheduler.delete("space:job-y")
    assert server.paths("DELETE") == []


def test_a_job_that_was_listed_is_not_taken_for_another_one(server, scheduler):
    server.answers["GET", AT.replace("/space/", "/default/")] = 200, {"items": [on_server(namespace="default")]}
    server.answers["GET", f"{AT.replace('/space/', '/default/')}/job-x"] = 200, on_server(namespace="default", uid="u2")
    assert [row.app_id for row in scheduler.list()] == ["default:job-x"]
    for act in (scheduler.cancel, scheduler.delete):
        with pytest.raises(SchedulerError, match="default:job-x is another job now: the job that was shown"):
            act("default:job-x")
    assert server.paths("PUT") == server.paths("DELETE") == []


def test_what_is_refused_is_not_offered_any_more(server, scheduler):
    can = scheduler.capabilities
    assert all((can.cancel, can.delete, can.shell, can.native, can.run_beside))
    assert all((can.log_time_range, can.retries, can.resources))
    server.answers["GET", f"{AT}/job-x"] = 200, on_server()
    server.answers["PUT", f"{AT}/job-x/status"] = status(403, "Forbidden", FORBIDDEN.format("update", "jobs/status"))
    with pytest.raises(NotAllowedError, match="alice may not update jobs/status"):
        scheduler.cancel("space:job-x")
    assert scheduler.capabilities == replace(can, cancel=False)
    server.answers["DELETE", f"{AT}/job-x"] = status(403, "Forbidden", FORBIDDEN.format("delete", "jobs"))
    with pytest.raises(NotAllowedError):
        scheduler.delete("space:job-x")
    assert scheduler.capabilities == replace(can, cancel=False, delete=False)
    # Jobs that may not be looked at tell nothing of shells in them, but that they are not to be had.
    server.answers["GET", f"{AT}/job-x"] = status(403, "Forbidden", FORBIDDEN.format("get", "jobs"))
    with pytest.raises(NotAllowedError):
        scheduler.shell_command("space:job-x", "worker", 0)
    assert scheduler.capabilities == replace(can, cancel=False, delete=False, shell=False)
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    server.answers["GET", "/version"] = 200, {"gitVersion": "v1"}
    server.answers["POST", review] = 201, {"status": {"allowed": False}}
    assert scheduler.check()[0].level == "ok"
    assert server.paths("POST").count(review) == 4  # what was refused is known


def test_what_the_server_keeps_of_a_job(server, scheduler):
    job = on_server()
    job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": "do not show"}]
    server.answers["GET", f"{AT}/job-x"] = 200, job
    owned = [{"uid": "u1"}], [{"uid": "u0"}]
    pods = [{"metadata": {"name": f"p{k}", "ownerReferences": owners}} for k, owners in enumerate(owned)]
    server.answers["GET", "/api/v1/namespaces/space/pods"] = 200, {"items": pods}
    text = scheduler.describe_native("space:job-x")
    documents = list(yaml.safe_load_all(text))
    assert [one["metadata"]["name"] for one in documents] == ["job-x", "p0"]
    assert ("managedFields" in text, "do not show" in text) == (False, False)
    assert scheduler.exists("space:job-x")
    assert not scheduler.exists("space:job-y")
    with pytest.raises(JobNotFoundError):
        scheduler.describe_native("space:job-y")
    assert scheduler.describe("space:job-y") is None


def test_why_a_job_waits_is_in_its_row_once_it_was_looked_at(server, scheduler):
    at = AT.replace("/space/", "/default/")
    job = on_server("Pending", namespace="default")
    job["status"]["state"]["reason"] = ""
    server.answers["GET", at] = 200, {"items": [job]}
    server.answers["GET", f"{at}/job-x"] = 200, job
    server.answers["GET", "/api/v1/namespaces/default/pods"] = 200, {"items": []}
    assert [row.msg for row in scheduler.list()] == [""]
    described = scheduler.describe("default:job-x")
    assert described is not None
    assert [row.msg for row in scheduler.list()] == [described.msg] == ["has no pod yet: worker/0"]
    # Another namespace is listed where it is asked for.
    server.answers["GET", AT] = 200, {"items": []}
    assert scheduler.list({"namespace": "space"}) == []
    assert len(scheduler.list({"namespace": "default"})) == 1


def test_jobs_are_launched_where_they_are_listed(server):
    configuration = Configuration()
    configuration.host = server.url
    for arguments, namespace, path in (
        ({"namespace": "space"}, "space", AT),
        ({}, "default", AT.replace("/space/", "/default/")),
        ({"all_namespaces": True, "namespace": "space"}, "default", "/apis/batch.volcano.sh/v1alpha1/jobs"),
    ):
        made = KubernetesScheduler("mine", ApiClient(configuration), **arguments)  # type: ignore[arg-type]
        assert dict(made.run_opts())["namespace"].default == namespace
        server.answers["GET", path] = 200, {"items": []}
        assert made.list() == []
        made.close()


def test_images_are_built_on_the_engine_that_is_given():
    engine: Any = object()
    made = KubernetesScheduler("mine", ApiClient(Configuration()), engine)
    with made.workspace_engine() as client:
        assert client is engine
    made.close()
