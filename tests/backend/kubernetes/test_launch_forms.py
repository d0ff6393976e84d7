"""Launching without Volcano: Jobs and JobSets, how replicas find one another, and that nothing is left behind."""

import json
from contextlib import closing, nullcontext
from typing import Any

import pytest
import yaml
from backend.kubernetes.apps import role
from backend.kubernetes.tables import table as tables
from kubernetes import client as models
from support.scripted_server import status

from torchx_tui.backends.kube.api_server import ApiError
from torchx_tui.backends.kubernetes import labels
from torchx_tui.backends.kubernetes.choose import LAUNCHED, choose_kind
from torchx_tui.backends.kubernetes.job_kind import joined_state
from torchx_tui.backends.kubernetes.kinds.found import ServerKinds
from torchx_tui.backends.kubernetes.lifecycle import launch, validate
from torchx_tui.backends.kubernetes.preflight import launch_findings
from torchx_tui.backends.kubernetes.request import KubernetesOpts, make_request
from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler
from torchx_tui.specs.errors import AppDefError, BackendUnavailableError, InvalidRunConfigException
from torchx_tui.specs.roles import AppDef, RetryPolicy, macros
from torchx_tui.specs.status import AppState


def table(name, fields):
    return tables("launch_without_volcano.yaml", name, fields)


JOBS = "/apis/batch/v1/namespaces/default/jobs"
SERVICES = "/api/v1/namespaces/default/services"
# A job that ran on Kubernetes 1.36.
TORCHRUN = """
apiVersion: v1
kind: Service
metadata: {name: torchrun, namespace: jobs}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {batch.kubernetes.io/job-name: torchrun}
  ports: [{name: rdzv, port: 29500}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: torchrun, namespace: jobs}
spec:
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 2
      containers:
      - name: trainer
        image: python:local
        imagePullPolicy: IfNotPresent
        command: [python3, -u, -c, pass]
        env:
        - {name: MASTER_ADDR, value: torchrun-0.torchrun}
        - {name: MASTER_PORT, value: '29500'}
        - {name: WORLD_SIZE, value: '4'}
        ports: [{containerPort: 29500, name: rdzv}]
        resources: {requests: {cpu: 10m, memory: 16Mi}}
      subdomain: torchrun
  backoffLimit: 0
  completionMode: Indexed
  completions: 4
  parallelism: 4
"""


def request(kind, *roles, name="job", **options):
    return make_request(AppDef(name, list(roles)), "mine", KubernetesOpts(**options), LAUNCHED[kind])


def container(job, *path):
    for part in (*path, "template", "spec", "containers", 0):
        job = job[part]
    return job


def env(one):
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in one["env"]}


def test_job_is_like_one_that_met_its_ranks():
    recorded_service, recorded = yaml.safe_load_all(TORCHRUN)
    made = request("job", role("trainer", num_replicas=4, port_map={"rdzv": 29500}), namespace="jobs")
    job, (service,) = made.resource, made.others
    for field in ("backoffLimit", "completionMode", "completions", "parallelism"):
        assert job["spec"][field] == recorded["spec"][field]
    assert container(job, "spec")["ports"] == container(recorded, "spec")["ports"]
    for field in ("clusterIP", "publishNotReadyAddresses"):
        assert str(service["spec"][field]) == str(recorded_service["spec"][field])
    pod_labels = job["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= pod_labels.items()
    assert (service["metadata"]["name"], service["metadata"]["namespace"]) == (job["metadata"]["name"], "jobs")
    assert (pod_labels[labels.ROLE_NAME], labels.REPLICA_ID in pod_labels) == ("trainer", False)


def test_macros_of_a_template_of_all_replicas():
    args = ["-c", f"echo {macros.replica_id} of {macros.app_id} at $${{{macros.rank0_env}}} in '{macros.img_root}'"]
    given = {"RANK": macros.replica_id, "JOB": macros.app_id}
    for kind, path in (("job", ("spec",)), ("jobset", ("spec", "replicatedJobs", 0, "template", "spec"))):
        job = request(kind, role(args=args, env=given, num_replicas=2)).resource
        name, one = job["metadata"]["name"], container(job, *path)
        assert one["command"][2] == f"echo $(JOB_COMPLETION_INDEX) of {name} at ${{TORCHX_RANK0_HOST}} in ''"
        # A variable refers to those before it only.
        assert list(env(one))[:3] == ["JOB_COMPLETION_INDEX", "RANK", "JOB"]
        assert (env(one)["RANK"], env(one)["JOB"]) == ("$(JOB_COMPLETION_INDEX)", name)
        assert "job-completion-index" in env(one)["JOB_COMPLETION_INDEX"]["fieldRef"]["fieldPath"]


def test_single_replica_needs_no_service():
    made = request("job", role(args=[macros.replica_id]))
    assert made.others == []
    one = container(made.resource, "spec")
    assert one["command"] == ["sh", "0"]
    assert env(one)["TORCHX_RANK0_HOST"] == "localhost"
    assert "subdomain" not in made.resource["spec"]["template"]["spec"]


def test_roles_share_an_id_and_a_service():
    made = request("job", role("trainer", num_replicas=2), role("reader"))
    first, (service, second) = made.resource, made.others
    name = first["metadata"]["name"]
    assert [one["metadata"]["name"] for one in (first, service, second)] == [name, name, f"{name}-reader"]
    assert made.app_id == f"default:job:{name}"
    for one in (first, service, second):
        assert one["metadata"]["labels"][labels.INSTANCE] == name
    for job in (first, second):
        template = job["spec"]["template"]
        assert template["metadata"]["labels"][labels.INSTANCE] == name
        assert template["spec"]["subdomain"] == name
        assert env(container(job, "spec"))["TORCHX_RANK0_HOST"] == f"{name}-0.{name}"
    # The AppDef is kept once.
    assert labels.APP_DEF in first["metadata"]["annotations"]
    assert "annotations" not in second["metadata"]


def test_jobset_holds_all_roles():
    made = request("jobset", role("Trainer_", num_replicas=2), role("reader"), queue="user-queue")
    job, spec = made.resource, made.resource["spec"]
    name = job["metadata"]["name"]
    assert made.others == []
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "user-queue"
    assert [(one["name"], one["replicas"]) for one in spec["replicatedJobs"]] == [("trainer", 1), ("reader", 1)]
    assert [one["template"]["spec"]["completions"] for one in spec["replicatedJobs"]] == [2, 1]
    host = env(container(job, "spec", "replicatedJobs", 1, "template", "spec"))["TORCHX_RANK0_HOST"]
    # JOBSET-REPLICATEDJOB-JOBINDEX-PODINDEX.JOBSET, as in a JobSet that was recorded.
    assert host == f"{name}-trainer-0-0.{name}"


@table("retries", "role_fields job in_set restarts")
def test_retries(role_fields, job, in_set, restarts):
    policy = RetryPolicy(role_fields.pop("retry_policy", "APPLICATION"))
    made = role(retry_policy=policy, **role_fields)
    single = request("job", made).resource["spec"]
    inner = (set_spec := request("jobset", made).resource["spec"])["replicatedJobs"][0]["template"]["spec"]
    for field, value in job.items():
        assert single.get(field) == value, field
    for field, value in (in_set or job).items():
        assert inner.get(field) == value, field
    assert set_spec.get("failurePolicy", {}).get("maxRestarts") == restarts


@pytest.mark.parametrize("kind", ["job", "jobset"])
def test_options_and_overlays_have_their_effect(kind):
    overlay = {"spec": {"tolerations": [{"key": macros.app_id}]}, "metadata": {"labels": {"team": "a"}}}
    job = request(kind, role(metadata={"kubernetes": overlay}), reserved_millicpu=250).resource
    spec = job["spec"] if kind == "job" else job["spec"]["replicatedJobs"][0]["template"]["spec"]
    template, pod = spec["template"], spec["template"]["spec"]
    assert pod["tolerations"] == [{"key": job["metadata"]["name"]}]
    assert template["metadata"]["labels"]["team"] == "a"
    assert pod["containers"][0]["resources"]["requests"]["cpu"] == "750m"


def assert_known(item, model):
    """Check the names of all fields by the client's models of the API."""
    names = {model.attribute_map[name]: kind for name, kind in model.openapi_types.items()}
    for key, value in item.items():
        assert key in names, f"{model.__name__} has no {key}"
        kind = names[key]
        of_item = kind.removeprefix("list[").removesuffix("]")
        if inner := getattr(models, of_item, None):
            for one in value if kind.startswith("list[") else [value]:
                assert_known(one, inner)


def test_fields_are_those_of_the_api():
    trainer = role("trainer", num_replicas=2, max_retries=1, retry_policy=RetryPolicy.REPLICA, port_map={"p": 1})
    made = request("job", trainer, role("reader", max_retries=2), queue="q", priority_class="high")
    assert_known(made.resource, models.V1Job)
    service, second = made.others
    assert_known(service, models.V1Service)
    assert_known(second, models.V1Job)
    for one in request("jobset", trainer).resource["spec"]["replicatedJobs"]:
        assert_known(one["template"], models.V1JobTemplateSpec)


@table("names", "kind app fields words")
def test_names_that_are_too_long(kind, app, fields, words):
    with pytest.raises(AppDefError, match=words) if words else nullcontext():
        request(kind, role(**fields), name="n" * app)


# What the server has


BATCH_GROUP, JOBSET_GROUP, VOLCANO_GROUP = "batch/v1", "jobset.x-k8s.io/v1alpha2", "batch.volcano.sh/v1alpha1"


@pytest.mark.parametrize(
    ("served", "kind"),
    [
        ([BATCH_GROUP, JOBSET_GROUP, VOLCANO_GROUP], "volcano"),
        ([BATCH_GROUP, JOBSET_GROUP], "jobset"),
        ([BATCH_GROUP], "job"),
    ],
)
def test_auto_takes_what_the_server_has(server, served, kind):
    server.serves(*served)
    find = ServerKinds(server.api()).find
    for _ in range(2):
        assert choose_kind(find, KubernetesOpts()) is LAUNCHED[kind]
    assert server.paths("GET") == ["/apis"]
    assert choose_kind(find, KubernetesOpts(kind="job")) is LAUNCHED["job"]
    with pytest.raises(InvalidRunConfigException, match=r"kind is 'pod'. Valid: auto, volcano, jobset, job"):
        choose_kind(find, KubernetesOpts(kind="pod"))


def test_auto_without_a_server_is_volcano(server):
    server.answers["GET", "/apis"] = lambda asked: None
    assert choose_kind(ServerKinds(server.api()).find, KubernetesOpts()) is LAUNCHED["volcano"]


def test_volcano_needs_a_queue():
    with pytest.raises(InvalidRunConfigException, match="Required run option: queue"):
        request("volcano", role())


@table("findings", "kind fields queue served words")
def test_findings(server, kind, fields, queue, served, words):
    for name in served or ():
        server.gives(f"/apis/kueue.x-k8s.io/v1beta1/namespaces/default/localqueues/{name}", {})
    app = AppDef("job", [role(**fields)])
    found = launch_findings(server.api(), LAUNCHED[kind], app, KubernetesOpts(queue=queue))
    assert [one.level for one in found] == ["warning"] * len(words)
    for one, part in zip(found, words, strict=True):
        assert part in one.what
    # One pod of the role is tried.
    (tried,) = [one for one in server.asked if one.path.endswith("/pods")]
    assert tried.body["spec"]["containers"][0]["name"] == "worker"


# Creating


def with_uid(asked):
    return 201, {**asked.body, "metadata": {**asked.body["metadata"], "uid": "u1"}}


def test_job_owns_what_is_created_after_it(server):
    server.answers["POST", JOBS] = with_uid
    made = request("job", role("trainer", num_replicas=2), role("reader"))
    validate(server.api(), LAUNCHED["job"], made.resource, made.others)
    assert [(one.path, one.params) for one in server.asked] == [
        (path, {"dryRun": "All"}) for path in (JOBS, SERVICES, JOBS)
    ]
    server.asked.clear()
    assert launch(server.api(), LAUNCHED["job"], made) == made.app_id
    assert [(one.method, one.path) for one in server.asked] == [("POST", JOBS), ("POST", SERVICES), ("POST", JOBS)]
    name = made.resource["metadata"]["name"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": "u1"}
    assert [one.body["metadata"].get("ownerReferences") for one in server.asked] == [None, [owner], [owner]]


def test_refused_service_takes_the_job_with_it(server):
    server.answers["POST", JOBS] = with_uid
    server.answers["POST", SERVICES] = status(403, "Forbidden", "services is forbidden: no more of them")
    made = request("job", role(num_replicas=2))
    with pytest.raises(ApiError, match=f"{made.app_id}: its Service was not launched: .*no more of them"):
        launch(server.api(), LAUNCHED["job"], made)
    (removed,) = server.requests("DELETE")
    assert removed.path == f"{JOBS}/{made.resource['metadata']['name']}"
    assert (removed.body["preconditions"], removed.body["propagationPolicy"]) == ({"uid": "u1"}, "Background")


def test_job_that_cannot_be_removed_again_is_named(server):
    made = request("job", role(num_replicas=2))
    path = f"{JOBS}/{made.resource['metadata']['name']}"
    server.answers["POST", JOBS] = with_uid
    server.answers["POST", SERVICES] = server.answers["GET", path] = lambda asked: None
    server.answers["DELETE", path] = lambda asked: None
    with pytest.raises(BackendUnavailableError, match="was created without it, and could not be removed again"):
        launch(server.api(), LAUNCHED["job"], made)


def test_lost_answer_makes_no_second_object(server):
    made = request("job", role(num_replicas=2))
    name, there = made.resource["metadata"]["name"], {}

    def create(asked):
        there[asked.path] = with_uid(asked)[1]

    for path in (JOBS, SERVICES):
        server.answers["POST", path] = create
        server.answers["GET", f"{path}/{name}"] = lambda asked, path=path: (200, there[path])
    assert launch(server.api(), LAUNCHED["job"], made) == made.app_id
    assert server.paths("POST") == [JOBS, SERVICES]
    assert server.paths("DELETE") == []


def test_server_that_does_not_number_replicas_is_refused(server):
    server.answers["POST", JOBS] = lambda asked: (201, {**asked.body, "spec": {"completions": 2}})
    single, double = (request("job", role(num_replicas=replicas)) for replicas in (1, 2))
    validate(server.api(), LAUNCHED["job"], single.resource, single.others)
    with pytest.raises(AppDefError, match="does not number the replicas"):
        validate(server.api(), LAUNCHED["job"], double.resource, double.others)


def test_dry_run_prints_all_objects():
    text = str(request("job", role(num_replicas=2, env={"API_TOKEN": "hush"})))
    assert [one["kind"] for one in list(yaml.safe_load_all(text))] == ["Job", "Service"]
    assert "hush" not in text
    assert "# the first object owns the others" in text


# Afterwards


@pytest.fixture
def scheduler(server):
    """Give a scheduler on a server that has nothing but Kubernetes' own jobs, and JobSets."""
    server.serves(BATCH_GROUP, JOBSET_GROUP)
    made = KubernetesScheduler("mine", server.client())
    yield made
    made.close()


def test_server_without_volcano_is_fine(server):
    server.serves(BATCH_GROUP)
    server.gives("/version", {"gitVersion": "v1.33"})
    server.gives("/api/v1/namespaces/default", {})
    rights = []

    def review(asked):
        rights.append("/".join(str(value) for value in asked.body["spec"]["resourceAttributes"].values()))
        return 201, {"status": {"allowed": rights[-1] != "create/services/default"}}

    server.answers["POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"] = review
    made = KubernetesScheduler("mine", server.client())
    found = {one.what: one.level for one in made.check()}
    made.close()
    assert found["apps are launched as a Job: there is no Volcano"] == "ok"
    assert [level for level in found.values() if level == "error"] == []
    (warning,) = [what for what, level in found.items() if level == "warning"]
    assert warning == "you may not create services: nothing of several replicas can be launched"


@pytest.mark.parametrize("kind", ["job", "jobset"])
@pytest.mark.parametrize("is_kept", [True, False])
def test_job_is_launched_again_as_it_was(server, scheduler, kind, is_kept):
    options = {"kind": kind, "queue": "q", "priority_class": "high", "service_account": "me", "validate_spec": False}
    trainer = role("trainer", num_replicas=2, env={"A": "$$(B)"}, port_map={"tb": 6006})
    roles = [trainer, role("reader")]
    first = scheduler.submit_dryrun(AppDef("job", roles), options).request
    path = LAUNCHED[kind].path("default", first.resource["metadata"]["name"])
    job: Any = {**first.resource, "metadata": {**first.resource["metadata"], "uid": "u1"}}
    if not is_kept:
        del job["metadata"]["annotations"][labels.APP_DEF]
    owner = {"ownerReferences": [{"uid": "u1"}], "uid": "u2"}
    others = [{**one, "metadata": {**one["metadata"], **owner}} for one in first.others if one["kind"] == "Job"]
    server.gives(path, job)
    for path in ("/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/events"):
        server.lists(path)
    server.lists(JOBS, *others, {"metadata": {"name": "other"}})
    described = scheduler.describe(first.app_id)
    again = AppDef(described.name, described.roles)
    assert [(one.role, len(one.replicas)) for one in described.roles_statuses] == [("trainer", 2), ("reader", 1)]
    second = scheduler.submit_dryrun(again, {**described.cfg, "validate_spec": False}).request
    assert second.app_id.rpartition(":")[0] == first.app_id.rpartition(":")[0]

    def comparable(made):
        """Return the objects with the same name, and without what each launch adds."""
        text = json.dumps([made.resource["spec"], [one["spec"] for one in made.others]])
        return json.loads(text.replace(made.resource["metadata"]["name"], "NAME"))

    assert comparable(second) == comparable(first)
    assert second.resource["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "q"


@table("joined", "joined")
def test_state_of_an_app_of_several_jobs(request, joined):
    states = request.node.callspec.id.split()
    assert joined_state([AppState[name] for name in states]) is AppState[joined]


def test_jobs_of_an_app_are_listed_and_cancelled_as_one(server, scheduler):
    made = request("job", role("trainer", num_replicas=2), role("reader"))
    first, second = made.resource, made.others[1]
    first["metadata"]["uid"], first["status"] = "u1", {"startTime": "2026-11-26T14:40:00Z", "active": 2, "ready": 2}
    second["metadata"] |= {"uid": "u2", "ownerReferences": [{"uid": "u1"}]}
    ended = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-11-26T14:41:00Z"}
    second["status"] = {"startTime": "2026-11-26T14:40:00Z", "conditions": [ended], "succeeded": 1}
    server.lists(JOBS, second, first)
    server.lists(LAUNCHED["jobset"].path("default"))
    name = first["metadata"]["name"]
    server.gives(f"{JOBS}/{name}", first)
    (row,) = scheduler.list()
    assert (row.app_id, row.state, row.finished_at) == (made.app_id, AppState.RUNNING, None)
    assert (row.replicas_running, row.replicas_wanted, row.replicas_succeeded) == (2, 3, 1)
    second["status"] = first["status"]
    server.answers["PUT", f"{JOBS}/{name}"] = server.answers["PUT", f"{JOBS}/{name}-reader"] = 200, {}
    scheduler.cancel(made.app_id)
    sent = [one.body for one in server.requests("PUT")]
    assert [one["metadata"]["name"] for one in sent] == [name, f"{name}-reader"]
    assert all(one["spec"]["activeDeadlineSeconds"] for one in sent)


# Gangs of Kubernetes itself


def gang_request(server, *roles, kind="job", versions=("batch/v1", "scheduling.k8s.io/v1alpha2")):
    """Return the request for roles on a server that has these versions of API groups."""
    server.serves(*versions)
    with closing(KubernetesScheduler("test", server.client(), namespace="space")) as scheduler:
        return scheduler.submit_dryrun(AppDef("job", list(roles)), {"kind": kind, "namespace": "space"}).request


def test_roles_that_start_with_fewer_replicas_are_gangs(server):
    made = gang_request(server, role(num_replicas=4, min_replicas=2), role("other"))
    name = made.resource["metadata"]["name"]
    assert made.resource["spec"]["template"]["spec"]["schedulingGroup"] == {"podGroupName": name}
    workload, group = [one for one in made.others if one["kind"] in ("Workload", "PodGroup")]
    assert {one["apiVersion"] for one in (workload, group)} == {"scheduling.k8s.io/v1alpha2"}
    assert [one["metadata"]["name"] for one in (workload, group)] == [name, name]
    policy = {"gang": {"minCount": 2}}
    assert workload["spec"] == {"podGroupTemplates": [{"name": "workers", "schedulingPolicy": policy}]}
    reference = {"workload": {"workloadName": name, "podGroupTemplateName": "workers"}}
    assert group["spec"] == {"podGroupTemplateRef": reference, "schedulingPolicy": policy}
    (other,) = [one for one in made.others if one["kind"] == "Job"]
    assert "schedulingGroup" not in other["spec"]["template"]["spec"]
    # The server is asked whether it would take them.
    asked = [one.path for one in server.asked if one.method == "POST" and "scheduling.k8s.io" in one.path]
    assert [path.rpartition("/")[2] for path in asked] == ["workloads", "podgroups"]


@table("no gangs", "kind fields versions")
def test_other_launches_name_no_gang(server, kind, fields, versions):
    made = gang_request(server, role(**fields), kind=kind, versions=versions)
    assert "schedulingGroup" not in str(made)
    assert not [one for one in made.others if one["kind"] in ("Workload", "PodGroup")]


def test_min_replicas_is_not_ignored_where_there_are_gangs(server):
    server.gives("/apis/scheduling.k8s.io/v1alpha2", {})
    app = AppDef("job", [role(min_replicas=1)])
    for kind, count in (("job", 0), ("jobset", 1)):
        found = launch_findings(server.api(), LAUNCHED[kind], app, KubernetesOpts())
        assert len([one for one in found if "min_replicas is ignored" in one.what]) == count
