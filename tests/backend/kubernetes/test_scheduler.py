"""The scheduler on a scripted server: dry runs, cancelling, deleting, describing and listing."""

import time
from contextlib import nullcontext

import pytest
import yaml
from backend.kubernetes.apps import role
from support.scripted_server import status
from support.volcano_jobs import make_job

from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.kube.pods import seconds_of
from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler
from torchx_tui.backends.runner import Runner
from torchx_tui.specs.errors import (
    BackendUnavailableError,
    InvalidRunConfigException,
    JobNotFoundError,
    NotAllowedError,
    SchedulerError,
)
from torchx_tui.specs.roles import AppDef, Role

DIGEST = "a" * 64
REPO = {"image_repo": "example.com/x"}
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
JOB = f"{JOBS}/job-x"


@pytest.fixture
def make(server):
    """Return what makes schedulers on the server."""
    made = []

    def make_one(*arguments, **options):
        made.append(KubernetesScheduler("mine", server.client(), *arguments, **options))
        return made[-1]

    yield make_one
    for scheduler in made:
        scheduler.close()


@pytest.fixture
def scheduler(make):
    return make()


# Launches


def dry_run(scheduler, *roles, **cfg):
    return scheduler.submit_dryrun(AppDef("job", list(roles) or [role()]), {"queue": "default", **cfg})


def test_dry_run_asks_the_server_once(server, scheduler):
    made = dry_run(scheduler, role(num_replicas=8), namespace="team").request
    (kinds, (method, path, params, body, _)) = server.asked
    assert (kinds.method, kinds.path) == ("GET", "/apis")
    assert (method, path) == ("POST", JOBS.replace("default", "team"))
    assert (params, body) == ({"dryRun": "All"}, made.resource)
    assert made.app_id == f"team:{made.resource['metadata']['name']}"


def test_dry_run_without_validation_asks_nothing(server, scheduler):
    assert "kind: Job" in str(dry_run(scheduler, validate_spec=False, kind="volcano"))
    assert server.asked == []


def test_dry_run_without_a_kubeconfig(tmp_path):
    with Runner(journal=Journal(tmp_path)) as runner:
        app = AppDef("job", [Role("r", "i", entrypoint="e")])
        job = runner.dryrun(app, "kubernetes", {"queue": "default", "validate_spec": False}).request.resource
        # A role without resources has no limits.
        (container,) = job["spec"]["tasks"][0]["template"]["spec"]["containers"]
        assert container["resources"] == {"limits": {}, "requests": {}}
        with pytest.raises(BackendUnavailableError, match=r"There is no kubeconfig.*validate_spec=false launches"):
            runner.dryrun(app, "kubernetes", {"queue": "default"})


def test_local_images_are_pushed(scheduler):
    app = AppDef("job", [role(image=f"sha256:{DIGEST}")])
    job = scheduler.submit_dryrun(app, {"queue": "default", **REPO}).request
    assert job.images_to_push == {f"sha256:{DIGEST}": ("example.com/x", DIGEST)}
    (container,) = job.resource["spec"]["tasks"][0]["template"]["spec"]["containers"]
    assert container["image"] == f"example.com/x:{DIGEST}"
    with pytest.raises(InvalidRunConfigException, match="set image_repo"):
        dry_run(scheduler, role(image=f"sha256:{DIGEST}"))


def test_preflight_depends_on_the_options(server, scheduler):
    app = AppDef("job", [role(image=f"sha256:{DIGEST}")])
    no_queue = "there is no queue q"
    no_image = f"worker: only the local Docker engine has its image sha256:{DIGEST[:12]}"
    for options, expected in ((REPO, [no_queue]), ({}, [no_image, no_queue])):
        assert [one.what for one in scheduler.preflight(app, {"queue": "q", **options})] == expected


def test_images_are_built_on_the_given_engine(make):
    engine = object()
    with make(engine).workspace_engine() as client:
        assert client is engine


# Jobs

FORBIDDEN = 'jobs "job-x" is forbidden: User "alice" cannot {} resource "{}" in API group "batch.volcano.sh"'


def on_server(phase="Running", reason="R", **metadata):
    made = make_job("job-x")
    kept = {"namespace": "default", "uid": "u1", "managedFields": [{"manager": "kubectl"}], "resourceVersion": "5"}
    made["metadata"] |= {**kept, **metadata}
    return {**made, "status": {"state": {"phase": phase, "reason": reason}, "conditions": [{"status": "Pending"}]}}


@pytest.fixture
def with_job(server):
    server.gives(JOB, on_server())
    server.lists(JOBS, on_server())
    return server


def test_cancel_writes_the_phase(with_job, scheduler):
    refused = iter([status(409, "Conflict", "it was changed")] * 4)
    with_job.answers["PUT", f"{JOB}/status"] = lambda asked: next(refused, (200, asked.body))
    scheduler.cancel("default:job-x")
    assert len(with_job.paths("PUT")) == 5
    written = with_job.asked[-1].body
    state = written["status"]["state"]
    assert (state["phase"], state["reason"], written["metadata"]["resourceVersion"]) == ("Aborted", "R", "5")
    ended = {"status": "Aborted", "lastTransitionTime": state["lastTransitionTime"]}
    assert written["status"]["conditions"] == [{"status": "Pending"}, ended]
    assert abs((seconds_of(ended["lastTransitionTime"]) or 0) - time.time()) < 600


@pytest.mark.parametrize(("code", "tries"), [(409, 5), (500, 1)])
def test_cancel_that_is_refused(with_job, scheduler, code, tries):
    with_job.answers["PUT", f"{JOB}/status"] = status(code, "Conflict", "it was changed")
    with pytest.raises(SchedulerError, match="it was changed"):
        scheduler.cancel("default:job-x")
    assert len(with_job.paths("PUT")) == tries


def test_cancel_leaves_ended_and_missing_jobs_alone(with_job, scheduler):
    with_job.gives(JOB, on_server("Failed"))
    scheduler.cancel("default:job-x")
    scheduler.cancel("default:job-y")
    scheduler.delete("default:job-y")
    assert with_job.paths("PUT") == with_job.paths("DELETE") == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, {}), ""),
        (status(404, "NotFound", "it is gone"), ""),
        (status(409, "Conflict", "the UID does not match"), "default:job-x is another job now"),
        (status(422, "Invalid", "it is odd"), "it is odd"),
    ],
)
def test_delete_names_the_uid(with_job, scheduler, answer, words):
    with_job.answers["DELETE", JOB] = answer
    with pytest.raises(SchedulerError, match=words) if words else nullcontext():
        scheduler.delete("default:job-x")
    assert with_job.asked[-1].body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u1"},
    }


def test_new_job_of_a_listed_name_is_left_alone(with_job, scheduler):
    assert [row.app_id for row in scheduler.list()] == ["default:job-x"]
    with_job.gives(JOB, on_server(uid="u2"))
    for act in (scheduler.cancel, scheduler.delete):
        with pytest.raises(SchedulerError, match="default:job-x is another job now: the job that was shown"):
            act("default:job-x")
    assert with_job.paths("PUT") == with_job.paths("DELETE") == []


@pytest.mark.parametrize(
    ("options", "app_id", "is_offered"),
    [
        ({}, "default:job-x", False),
        # Another namespace than the listed one.
        ({}, "other:job-x", True),
        ({"all_namespaces": True}, "other:job-x", True),
    ],
)
def test_refused_shell_is_no_longer_offered(with_job, make, options, app_id, is_offered):
    scheduler = make(**options)
    assert scheduler.capabilities.shell
    namespace = app_id.partition(":")[0]
    # A job that may not be read has no shell to offer.
    forbidden = status(403, "Forbidden", FORBIDDEN.format("get", "jobs"))
    with_job.answers["GET", JOB.replace("default", namespace)] = forbidden
    with pytest.raises(NotAllowedError, match="alice may not get jobs"):
        scheduler.shell_command(app_id, "worker", 0)
    assert scheduler.capabilities.shell is is_offered


@pytest.mark.parametrize(("options", "is_offered"), [({}, False), ({"all_namespaces": True}, True)])
def test_check_learns_whether_shells_are_allowed(with_job, make, options, is_offered):
    scheduler = make(**options)
    with_job.gives("/version", {"gitVersion": "v1"})
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    for allowed in (False, True):
        with_job.answers["POST", review] = 201, {"status": {"allowed": allowed}}
        assert scheduler.check()[0].level == "ok"
        assert scheduler.capabilities.shell is (allowed or is_offered)


def test_native_description(with_job, scheduler):
    secret = {"env": [{"name": "TOKEN", "value": "do not show"}]}
    job = {**on_server(), "spec": make_job("job-x", container=secret)["spec"]}
    pods = [{"metadata": {"name": f"p-{uid}", "ownerReferences": [{"uid": uid}]}} for uid in ("u1", "u0")]
    with_job.gives(JOB, job)
    with_job.lists("/api/v1/namespaces/default/pods", *pods)
    text = scheduler.describe_native("default:job-x")
    assert [one["metadata"]["name"] for one in yaml.safe_load_all(text)] == ["job-x", "p-u1"]
    assert ("managedFields" in text, "do not show" in text) == (False, False)


def test_missing_job(with_job, scheduler):
    assert scheduler.exists("default:job-x")
    assert not scheduler.exists("default:job-y")
    assert scheduler.describe("default:job-y") is None
    with pytest.raises(JobNotFoundError):
        scheduler.describe_native("default:job-y")


def test_described_reason_is_in_the_row(server, scheduler):
    server.lists(JOBS, on_server("Pending", ""))
    server.gives(JOB, on_server("Pending", ""))
    server.lists("/api/v1/namespaces/default/pods")
    assert [row.msg for row in scheduler.list()] == [""]
    words = "has no pod yet: worker/0"
    assert scheduler.describe("default:job-x").msg == words
    assert [row.msg for row in scheduler.list()] == [words]


@pytest.mark.parametrize(
    ("options", "namespace", "path"),
    [
        ({}, "default", JOBS),
        ({"namespace": "space"}, "space", JOBS.replace("default", "space")),
        ({"all_namespaces": True, "namespace": "space"}, "default", "/apis/batch.volcano.sh/v1alpha1/jobs"),
    ],
)
def test_namespace_of_launches_and_lists(server, make, options, namespace, path):
    made = make(**options)
    assert dict(made.run_opts())["namespace"].default == namespace
    for answers in (path, JOBS.replace("default", "other")):
        server.lists(answers)
    assert made.list() == []
    assert made.list({"namespace": "other"}) == []
