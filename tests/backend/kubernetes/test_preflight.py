"""What is found before a launch, and what is passed over because this user may not look."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from backend.kubernetes.apps import role
from support.scripted_server import scripted_server, status

from torchx_tui.backends.kubernetes import preflight
from torchx_tui.backends.kubernetes.preflight import (
    CANCEL,
    LIST,
    SHELL,
    GpuNodes,
    Rights,
    known_values,
    launch_findings,
    server_findings,
)
from torchx_tui.backends.kubernetes.request.request import KubernetesOpts
from torchx_tui.specs import AppDef, Resource, VolumeMount, Workspace

VOLCANO = "/apis/batch.volcano.sh/v1alpha1"
NAMESPACE = "/api/v1/namespaces/default"
QUEUE = "/apis/scheduling.volcano.sh/v1beta1/queues/main"
PODS = f"{NAMESPACE}/pods"
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
REVIEWED = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
FORBIDDEN = status(
    403,
    "Forbidden",
    'things is forbidden: User "alice" cannot get resource "things" in API group "" at the cluster scope',
)


@pytest.fixture
def server():
    """Return a server on which nothing is missing."""
    with scripted_server() as made:
        for path in (VOLCANO, NAMESPACE, QUEUE):
            made.answers["GET", path] = (200, {"status": {}})
        yield made


def found(server, *roles, name="job", image_repo="", **options):
    given: dict[str, Any] = {"queue": "main", **options}
    return launch_findings(server.api(), AppDef(name, list(roles) or [role()]), KubernetesOpts(**given), image_repo)


def the_one(findings, level):
    (one,) = findings
    assert one.level == level
    return f"{one.what}: {one.hint}"


def test_nothing_is_found_where_nothing_is_missing(server):
    assert found(server, role("a", num_replicas=8), role("b")) == []
    # A pod of each role is tried, whatever the number of replicas; nothing is created.
    assert [one.params for one in server.asked if one.path == PODS] == [{"dryRun": "All"}] * 2
    names = [one.body["metadata"]["name"] for one in server.asked if one.path == PODS]
    assert [name.split("-", 2)[2] for name in names] == ["a-0-0", "b-0-0"]


def test_no_volcano(server):
    del server.answers["GET", VOLCANO]
    assert "the cluster has no Volcano" in the_one(found(server), "error")


def test_no_namespace(server):
    del server.answers["GET", NAMESPACE]
    assert "no namespace default: choose another, or `kubectl create" in the_one(found(server), "error")


def test_no_queue(server):
    assert "no queue other: Volcano would ignore the job" in the_one(found(server, queue="other"), "warning")


def test_a_queue_that_is_closed(server):
    server.answers["GET", QUEUE] = (200, {"status": {"state": "Closed"}})
    assert "the queue main is closed" in the_one(found(server), "warning")


def test_the_right_to_launch(server):
    server.answers["POST", REVIEW] = (201, {"status": {"allowed": False}})
    assert "you may not create jobs.batch.volcano.sh in namespace default" in the_one(found(server), "error")
    (asked,) = [one.body for one in server.asked if one.path == REVIEW]
    wanted = {"namespace": "default", "verb": "create", "group": "batch.volcano.sh", "resource": "jobs"}
    assert asked == {**REVIEWED, "spec": {"resourceAttributes": wanted}}


def test_what_pods_are_given(server):
    findings = found(server, service_account="me", priority_class="high")
    assert [one.what for one in findings] == [
        "there is no priority class high",
        "there is no service account me in default",
    ]


def test_claims(server):
    one_node = {"spec": {"accessModes": ["ReadWriteOnce"]}, "status": {"phase": "Bound"}}
    server.answers["GET", f"{NAMESPACE}/persistentvolumeclaims/one"] = (200, one_node)
    server.answers["GET", f"{NAMESPACE}/persistentvolumeclaims/lost"] = (200, {"status": {"phase": "Lost"}})
    mounts: list[Any] = [VolumeMount(name, f"/{name}") for name in ("one", "lost", "none")]
    findings = found(server, role(num_replicas=2, mounts=mounts))
    assert [(one.level, one.what) for one in findings] == [
        ("warning", "worker: the claim one is for one node"),
        ("error", "worker: the claim lost has lost its volume"),
        ("error", "worker: there is no claim none in default"),
    ]


def test_a_claim_for_one_node_is_enough_for_one_replica(server):
    server.answers["GET", f"{NAMESPACE}/persistentvolumeclaims/one"] = (
        200,
        {"spec": {"accessModes": ["ReadWriteOnce"]}},
    )
    assert found(server, role(mounts=[VolumeMount("one", "/one")])) == []


@pytest.mark.parametrize(("items", "levels"), [([], ["warning"]), ([{}], [])])
def test_nodes_with_the_labels(server, items, levels):
    server.answers["GET", "/api/v1/nodes"] = (200, {"items": items})
    wanted = Resource(cpu=1, gpu=0, memMB=64, capabilities={"example.com/zone": "a", "example.com/b": "c"})
    findings = found(server, role(resource=wanted))
    assert [one.level for one in findings] == levels
    (asked,) = [one.params for one in server.asked if one.path == "/api/v1/nodes"]
    assert asked == {"labelSelector": "example.com/zone=a,example.com/b=c", "limit": "1"}


@pytest.mark.parametrize(
    ("message", "level", "words"),
    [
        (
            'pods "x" is forbidden: exceeded quota: q, requested: cpu=1, used: cpu=2, limited: cpu=2',
            "warning",
            "the quota q",
        ),
        (
            'pods "x" is forbidden: violates PodSecurity "restricted": privileged',
            "error",
            'violates PodSecurity "restricted"',
        ),
    ],
)
def test_what_the_server_has_against_the_pods(server, message, level, words):
    server.answers["POST", PODS] = status(403, "Forbidden", f'pods "x" is forbidden: {message}')
    said = the_one(found(server), level)
    assert said.startswith("worker: ")
    assert words in said


def test_what_this_user_may_not_look_at_is_passed_over(server):
    for path in (VOLCANO, NAMESPACE, QUEUE, "/api/v1/nodes", f"{NAMESPACE}/persistentvolumeclaims/c"):
        server.answers["GET", path] = FORBIDDEN
    server.answers["GET", f"{NAMESPACE}/serviceaccounts/me"] = FORBIDDEN
    server.answers["POST", PODS] = server.answers["POST", REVIEW] = FORBIDDEN
    wanted = Resource(cpu=1, gpu=0, memMB=64, capabilities={"example.com/zone": "a"})
    assert found(server, role(resource=wanted, mounts=[VolumeMount("c", "/c")]), service_account="me") == []


def test_images_that_nodes_cannot_have(server):
    local = role(image="sha256:" + "a" * 64)
    built = role("b", workspace=Workspace({"/home/me": ""}))
    findings = found(server, local, built)
    assert [one.level for one in findings] == ["error"] * 2
    assert all("set image_repo" in one.hint for one in findings)
    assert found(server, local, built, image_repo="example.com/x") == []


def test_a_job_that_is_too_large(server):
    said = the_one(found(server, role(env={"LONG": "x" * 20_000}, num_replicas=100)), "error")
    assert "too large for the server with its 100 replicas" in said


def test_a_name_that_begins_with_a_digit(server):
    assert "begins with a digit" in the_one(found(server, name="9lives"), "warning")


def test_a_server_that_is_away(server):
    server.answers["GET", VOLCANO] = lambda asked: None
    assert "closed the connection" in the_one(found(server), "error")


def test_an_overlay_that_does_not_fit(server):
    assert "The overlay" in the_one(found(server, role(metadata={"kubernetes": {"spec": 3}})), "error")


def node(gpus):
    return {"status": {"allocatable": {"cpu": "8", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}}}


@pytest.mark.parametrize(
    ("items", "more", "words"),
    [
        ([node(0)], "", "no node has any"),
        ([node(4), node(2)], "", "no node has more than 4"),
        ([node(8)], "", ""),
        ([node(0)], "a page more", ""),
        ([], "", ""),
    ],
)
def test_gpus_that_no_node_has(server, items, more, words):
    server.answers["GET", "/api/v1/nodes"] = (200, {"items": items, "metadata": {"continue": more}})
    findings = found(server, role(resource=Resource(cpu=1, gpu=8, memMB=64)))
    assert [one.what for one in findings] == ([f"worker: 8 gpu asked for, {words}"] if words else [])
    assert all(one.level == "warning" and "ask for fewer" in one.hint for one in findings)


def test_nodes_are_asked_for_their_gpus_once_a_minute_and_not_without_need(server):
    server.answers["GET", "/api/v1/nodes"] = (200, {"items": [node(0)]})
    gpus = GpuNodes(server.api())
    opts = KubernetesOpts(queue="main")
    launch_findings(server.api(), AppDef("job", [role()]), opts, gpus=gpus)
    assert not [one for one in server.asked if one.path == "/api/v1/nodes"]
    app = AppDef("job", [role(resource=Resource(cpu=1, gpu=1, memMB=64)) for _ in range(2)])
    for _ in range(3):
        assert launch_findings(server.api(), app, opts, gpus=gpus)
    assert len([one for one in server.asked if one.path == "/api/v1/nodes"]) == 1


def test_a_server_that_tells_nobody_of_its_nodes(server):
    server.answers["GET", "/api/v1/nodes"] = FORBIDDEN
    assert found(server, role(resource=Resource(cpu=1, gpu=8, memMB=64))) == []


def test_a_script_that_does_not_travel(server, tmp_path):
    made = role(workspace=Workspace({str(tmp_path): ""}))
    made.entrypoint, made.args = "python", ["train.py"]
    assert "train.py is not in the workspace" in the_one(found(server, made, image_repo="example.com/x"), "warning")
    (tmp_path / "train.py").touch()
    assert found(server, made, image_repo="example.com/x") == []


# A server, whatever is launched

CONTROLLER = "/api/v1/namespaces/volcano-system/pods"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


def named(*names):
    return 200, {"items": [{"metadata": {"name": name}} for name in names]}


def of_server(server, namespace="default"):
    api = server.api()
    return [(one.level, one.what) for one in server_findings(api, namespace, Rights(api, namespace))]


def test_what_a_server_is(server):
    server.answers["GET", "/version"] = 200, {"gitVersion": "v1.33"}
    server.answers["GET", QUEUES] = named("main", "other\x1b[2J")
    server.answers["POST", REVIEW] = 201, {"status": {"allowed": True}}
    fine = [("ok", f"Kubernetes v1.33 at {server.url}"), ("ok", "Volcano's jobs, queues main, other")]
    assert of_server(server) == fine
    (asked,) = [one for one in server.asked if one.path == CONTROLLER]
    assert asked.params == {"labelSelector": "app=volcano-controller"}
    for phases, missing in (((), False), (("Pending", "Running"), False), (("Pending", "Failed"), True)):
        server.answers["GET", CONTROLLER] = 200, {"items": [{"status": {"phase": phase}} for phase in phases]}
        rest = [("warning", "Volcano's controller is not running: jobs stay as they are")] if missing else []
        assert of_server(server) == fine + rest
    server.answers["GET", CONTROLLER] = FORBIDDEN
    server.answers["GET", QUEUES] = named()
    assert of_server(server)[1] == ("ok", "Volcano's jobs, no queue")
    server.answers["GET", QUEUES] = FORBIDDEN
    assert of_server(server)[1:] == [("ok", "Volcano's jobs, queues not readable")]
    server.answers["GET", "/version"] = 200, {}
    assert of_server(server, "gone")[2:] == [("error", "there is no namespace gone")]
    assert of_server(server, "")[0] == ("ok", f"Kubernetes ? at {server.url}")
    server.answers["GET", VOLCANO] = FORBIDDEN
    assert of_server(server)[1][1].startswith("whether Volcano is installed cannot be checked: not allowed: alice")
    del server.answers["GET", VOLCANO]
    assert of_server(server)[1] == ("error", "Volcano is not installed: the server knows no jobs.batch.volcano.sh")
    server.answers["GET", "/version"] = lambda asked: None
    ((level, what),) = of_server(server)
    assert (level, "closed the connection" in what) == ("error", True)


def test_what_is_not_allowed_is_told_with_what_does_not_work(server):
    asked: list[dict[str, str]] = []

    def review(one):
        assert {name: one.body[name] for name in REVIEWED} == REVIEWED
        asked.append(one.body["spec"]["resourceAttributes"])
        return 201, {"status": {"allowed": asked[-1]["verb"] not in ("update", "get")}}

    server.answers["GET", "/version"] = 200, {"gitVersion": "v1.33"}
    server.answers["POST", REVIEW] = review
    api = server.api()
    rights = Rights(api, "default")
    assert [(one.level, one.what) for one in server_findings(api, "default", rights)][2:] == [
        ("warning", "you may not get pods/log: logs are not shown"),
        ("warning", "you may not update jobs.batch.volcano.sh/status: nothing can be cancelled"),
        ("warning", "you may not get pods/exec: no shell can be opened"),
    ]
    group = {"group": "batch.volcano.sh", "namespace": "default"}
    assert asked == [
        {"verb": "list", "resource": "jobs", **group},
        {"verb": "list", "resource": "pods", "namespace": "default"},
        {"verb": "get", "resource": "pods", "subresource": "log", "namespace": "default"},
        {"verb": "create", "resource": "jobs", **group},
        {"verb": "update", "resource": "jobs", "subresource": "status", **group},
        {"verb": "delete", "resource": "jobs", **group},
        {"verb": "get", "resource": "pods", "subresource": "exec", "namespace": "default"},
    ]
    # Neither is asked again; what was not asked counts as allowed, until the server refuses it.
    assert [rights.allows(right) for right in (LIST, CANCEL)] == [True, False]
    assert [rights.known_missing(right) for right in (LIST, CANCEL)] == [False, True]
    assert len(asked) == 7
    rights = Rights(api, "")
    assert not rights.known_missing(SHELL)
    rights.refused(SHELL)
    assert (rights.known_missing(SHELL), rights.allows(SHELL), len(asked)) == (True, False, 7)
    assert rights.allows(LIST)
    assert "namespace" not in asked[-1]
    for answer in (FORBIDDEN, (201, {}), (201, {"status": None})):
        server.answers["POST", REVIEW] = answer
        assert Rights(api, "default").allows(CANCEL)


def test_values_that_an_option_can_have(server, tmp_path, monkeypatch):
    contexts = [{"name": name, "context": {"namespace": "space"}} for name in ("here", "there")]
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps({"contexts": contexts}))
    monkeypatch.setenv("KUBECONFIG", str(path))
    server.answers["GET", "/api/v1/namespaces"] = named("default", "od\x1bd")
    server.answers["GET", QUEUES] = FORBIDDEN
    server.answers["GET", "/apis/scheduling.k8s.io/v1/priorityclasses"] = named()
    server.answers["GET", "/api/v1/namespaces/default/serviceaccounts"] = named("me")
    assert known_values(server.api()) == {
        "context": ["here", "there"],
        "namespace": ["default"],
        "service_account": ["me"],
    }
    assert {one.params["limit"] for one in server.asked} == {"200"}
    server.answers["GET", "/api/v1/namespaces"] = lambda asked: None
    assert known_values(server.api()) == {"context": ["here", "there"]}
    path.write_text("[1]")
    assert known_values(server.api()) == {}


def test_rights_are_asked_for_again_after_some_minutes(server, monkeypatch):
    now = 1.0
    monkeypatch.setattr(preflight, "time", SimpleNamespace(monotonic=lambda: now))
    rights = Rights(server.api(), "default")
    counts = []
    for seconds in (1.0, 290.0, 310.0):
        now = seconds
        assert rights.allows(LIST)
        counts.append(server.paths("POST").count(REVIEW))
    assert counts == [1, 1, 2]
